//! Plans a graph that comes from no file: sizes, sharing, scratch and costs are handed over.

use lowtide::{Bytes, GraphBuilder, Op, PlanConfig, Sharing, Size, check, plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut b = GraphBuilder::new("example");
    let (half, whole) = (Bytes(1 << 20), Bytes(2 << 20));
    let image = b.input("image", Size::Fixed(whole));
    let [left, right, active] =
        ["left", "right", "active"].map(|name| b.computed(name, Size::Fixed(half)));
    let both = b.computed("both", Size::Fixed(whole));
    let seconds = 2e-3;
    b.op(Op::new("conv0", "Conv", [image], [left])
        .scratch(Size::Fixed(Bytes(65536)))
        .cost(seconds));
    b.op(Op::new("conv1", "Conv", [image], [right]).cost(seconds));
    b.op(Op::new("relu", "Relu", [right], [active])
        .sharing(Sharing::MayOverwrite { output: active, of: right }));
    b.op(Op::new("concat", "Concat", [left, active], [both])
        .sharing(Sharing::PartOf { input: left, output: both, offset: Bytes(0) })
        .sharing(Sharing::PartOf { input: active, output: both, offset: half }));
    b.output(both);

    let graph = b.finish()?;
    let planned = plan(&graph, &PlanConfig::default())?;
    let checked = check(&graph, planned.plan)?;
    // `active` is written over `right`, and both parts into `both`: two megabytes, not five, as the scratch of `conv0`
    // lies where `right` comes.
    assert_eq!(checked.plan().stats.arena_bytes, whole);
    Ok(())
}
