def test_a_page_goes_its_whole_way(make_bench) -> None:
    bench = make_bench()
    bench.submit_and_run()
    print(
        bench.history(),
        bench.attempts(),
        bench.spend(),
        bench.billed(),
        bench.calls(),
        bench.writes(),
    )
    assert 0
