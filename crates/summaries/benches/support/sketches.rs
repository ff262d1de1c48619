//! Sketches for the benchmarks of the core.

use dptop_summaries::row_hash::Keys;
use dptop_summaries::{Integer, Items, Kind, SignedWeights, Sketch, SketchParameters, SketchRule};

use crate::support::Strings;

/// An empty sketch with fixed keys.
pub fn sketch(rule: SketchRule, width: usize, depth: usize) -> Sketch {
    let parameters = SketchParameters {
        rule,
        width,
        depth,
        max_label_bytes: 4096,
        identity: [42; 16],
    };
    let keys = Keys::draw(depth, Some([42; 32])).expect("a seed takes no entropy");
    Sketch::new(parameters, keys).expect("memory for the cells")
}

/// Count integers into a sketch.
pub fn sketch_integers(sketch: &mut Sketch, items: &[i64], weights: SignedWeights<'_>) {
    let items = Items::all(items.len(), |at| Some(Integer::from(items[at])));
    sketch
        .extend_integers(items, weights)
        .expect("integers within the length of a stream");
}

/// Count strings into a sketch.
pub fn sketch_strings(sketch: &mut Sketch, items: &Strings) {
    let items = Items::all(items.len(), |at| Some(items.get(at)));
    sketch
        .extend_byte_strings(Kind::String, items, SignedWeights::Unit)
        .expect("strings within the length of a stream");
}
