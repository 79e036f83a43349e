import pytest

from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.real_cms.conftest import RealBench


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_wordpress_keeps_the_law(law: Law, bench: RealBench) -> None:
    assert not bench.cms.capabilities.client_id
    law(bench)


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_wordpress_with_our_plugin_keeps_the_law(law: Law, guarded_bench: RealBench) -> None:
    assert guarded_bench.cms.capabilities.client_id
    assert guarded_bench.cms.capabilities.compare_and_swap
    law(guarded_bench)
