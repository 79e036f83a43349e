"""Everything outside: model providers, content systems, hooks. Each folder implements one port."""
