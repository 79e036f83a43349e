"""The language model behind ``core.ports.LanguageModel``, and what its tokens cost.

``openai_model`` makes the paid call, by ``client`` on ``transport``; ``profiles`` says what a
provider can do; ``classify`` (exceptions) and ``refusals`` (HTTP answers) name every failure;
``reading`` and ``stored`` interpret answers; ``prices`` turns tokens into dollars.
"""
