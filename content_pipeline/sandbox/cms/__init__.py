"""An offline stand-in for WordPress and for the services that are told about published pages.

What belongs here: the REST API of pages as measured on WordPress 6.1.9, the public site, endpoints
for IndexNow, deploy hooks, cache purges and webhooks, people who edit pages by hand, and a truth
of its own. Rendering filters (paragraphs, curly quotes) are not imitated: ``rendered`` is the raw
text.
"""
