//! Nodes that are used together, within bounds of memory.

use rayon::prelude::*;

use crate::model::Node;

/// The most nodes of a batch.
const NODES: usize = 512;

/// The most bytes of memory of a batch, by an estimate.
const MEMORY: usize = 128 << 20;

/// Uses a batch of nodes.
pub(in crate::cli) type UseBatch<'u> = &'u mut dyn FnMut(&[Node]);

/// Nodes that wait until there are enough of them.
pub(super) struct NodeBatch<'u> {
    nodes: Vec<Node>,
    memory: usize,
    each: UseBatch<'u>,
}

impl<'u> NodeBatch<'u> {
    pub(super) fn new(each: UseBatch<'u>) -> Self {
        Self { nodes: Vec::new(), memory: 0, each }
    }

    pub(super) fn push(&mut self, node: Node, memory: usize) {
        self.nodes.push(node);
        self.memory += memory;
        if self.nodes.len() >= NODES || self.memory >= MEMORY {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        if !self.nodes.is_empty() {
            (self.each)(&self.nodes);
        }
        // Facts are many small values: to free those of a batch takes a quarter of the time to read them.
        std::mem::take(&mut self.nodes).into_par_iter().for_each(drop);
        self.memory = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_by_nodes_and_by_memory() {
        let mut sizes = Vec::new();
        let mut each = |nodes: &[Node]| sizes.push(nodes.len());
        let mut batch = NodeBatch::new(&mut each);
        for memory in [1, MEMORY, 1] {
            batch.push(Node::named("n".to_owned()), memory);
        }
        (0..NODES).for_each(|_| batch.push(Node::named("n".to_owned()), 1));
        batch.flush();
        assert_eq!(sizes, [2, NODES, 1]);
    }
}
