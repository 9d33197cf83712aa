//! Plans a graph that comes from no file: sizes, sharing and scratch are handed over.

use lowtide::{Bytes, GraphBuilder, Op, PlanConfig, Sharing, Size, check, plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut b = GraphBuilder::new("example");
    let size = Size::Fixed(Bytes(1 << 20));
    let image = b.input("image", size);
    let kernel = b.weight("kernel", Size::Fixed(Bytes(4096)));
    let hidden = b.computed("hidden", size);
    let active = b.computed("active", size);
    b.op(Op::new("conv", "Conv", [image, kernel], [hidden]).scratch(Size::Fixed(Bytes(65536))));
    b.op(Op::new("relu", "Relu", [hidden], [active])
        .sharing(Sharing::MayOverwrite { output: active, of: hidden }));
    b.output(active);

    let graph = b.finish()?;
    let planned = plan(&graph, &PlanConfig::default())?;
    let checked = check(&graph, planned.plan)?;
    // `active` is written over `hidden`: one megabyte and the scratch, not two.
    assert_eq!(checked.plan().stats.arena_bytes, Bytes((1 << 20) + 65536));
    Ok(())
}
