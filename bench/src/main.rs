//! temp
use std::time::Instant;
use lowtide_core::testing::large_graph;
use lowtide_planner::*;
fn main() {
    for n in [2000usize, 10_000, 100_000, 1_000_000] {
        let t = Instant::now();
        let g = large_graph(n, 1);
        let build = t.elapsed().as_secs_f64();
        for (name, order) in [("score", OrderRule::Score), ("best", OrderRule::Best)] {
        let t = Instant::now();
        let p = plan(&g, &PlanConfig { order, ..PlanConfig::default() }).unwrap();
        let planned = t.elapsed().as_secs_f64();
        let s = p.plan.stats;
        let t = Instant::now();
        let ok = lowtide_core::check(&g, p.plan).is_ok();
        let checked = t.elapsed().as_secs_f64();
        println!("{name} {n} build {build:.3} plan {planned:.4} ({:.2} us/op) check {checked:.3} {ok} peak {} arena {} {:?}", planned*1e6/n as f64, s.peak_live_bytes, s.arena_bytes, p.tried);
        }
    }
}
