//! What the packages install, by their metadata in `Cargo.toml`.

use crate::program::root;

#[test]
fn the_environment_of_the_unit_is_not_for_every_user() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    // It may hold the password of a URL.
    let lines: Vec<&str> =
        manifest.lines().filter(|it| it.contains("packaging/clade.default")).collect();
    assert_eq!(lines.len(), 2, "one of each package: {lines:?}");
    for line in lines {
        assert!(line.contains(r#""640""#), "{line}");
    }
}
