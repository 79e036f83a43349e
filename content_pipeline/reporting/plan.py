"""What a site was meant to cost: the one place that says so.

What belongs here: the plan as the site's file states it. What it did cost is read from the ledger.
"""

from content_pipeline.core.health import Plan
from content_pipeline.core.site import SiteSettings


def planned(site: SiteSettings) -> Plan:
    """The day's cap, and what a published page should cost if somebody said."""
    return Plan(day_usd=site.budgets.site_day_usd, page_usd=site.health.expected_page_usd)
