//! Nodes of which some values were not stored: nothing is answered of them that is not true of the whole node.

use clade::internals::classification;
use clade::internals::model::{MASKED, Map, Node, STORED_PATHS, Value};
use clade::internals::snapshot::Index;
use fastrand::Rng;

use crate::world::{nodes, odd};

/// Masks some values.
fn mask(value: &mut Value, rng: &mut Rng) {
    if rng.u8(..6) == 0 {
        *value = MASKED.into();
        return;
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|it| mask(it, rng)),
        Value::Array(elements) => elements.iter_mut().for_each(|it| mask(it, rng)),
        _ => {}
    }
}

/// Leaves some entries out, and lists every path of the others.
fn leave_out(map: &mut Map<String, Value>, rng: &mut Rng) {
    let mut paths = Vec::new();
    map.retain(|key, value| {
        let is_stored = rng.bool();
        if is_stored {
            add_paths(&[key.as_str().into()], value, &mut paths);
        }
        is_stored
    });
    map.insert(STORED_PATHS.to_owned(), paths.into());
}

fn add_paths(path: &[Value], value: &Value, paths: &mut Vec<Value>) {
    paths.push(path.into());
    let mut below = |step: Value, value: &Value| {
        add_paths(&[path, &[step]].concat(), value, paths);
    };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, it)| below(key.as_str().into(), it));
        }
        Value::Array(elements) => {
            (0..).zip(elements).for_each(|(at, it)| below(Value::from(at), it));
        }
        _ => {}
    }
}

#[test]
fn what_was_not_stored_is_never_taken_for_missing() {
    let mut rng = Rng::with_seed(17);
    let (mut known, mut unknown) = (0, 0);
    for _ in 0..300 {
        let estate = odd::estate(&mut rng);
        let (hierarchy, index) = (&estate.hierarchy, Index::new(&estate.hierarchy));
        for _ in 0..12 {
            let whole = odd::node(&mut rng);
            let mut stored: Node = whole.clone();
            for map in [&mut stored.fact, &mut stored.trusted] {
                match rng.u8(..3) {
                    0 => leave_out(map, &mut rng),
                    1 => map.values_mut().for_each(|it| mask(it, &mut rng)),
                    _ => {}
                }
            }
            let plain = classification::matches(hierarchy, &stored);
            assert_eq!(index.matching(hierarchy, &stored), plain, "{stored:?}");
            let body = nodes::body(&stored);
            if let Some(read) = index.read(&stored.name, &body) {
                assert_eq!(index.matches(hierarchy, &read.resolved), plain, "{stored:?}");
            }
            if plain.is_ok() {
                assert_eq!(plain, classification::matches(hierarchy, &whole), "{stored:?}");
                known += 1;
            } else {
                unknown += 1;
            }
        }
    }
    assert!(known > 300 && unknown > 300, "{known} {unknown}");
}
