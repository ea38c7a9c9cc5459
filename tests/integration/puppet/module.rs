//! The module of the node terminus has tests of its own, in Ruby.

use std::process::Command;

use crate::program::root;

#[test]
fn the_specification_of_the_module_holds() {
    let module = root().join("examples/puppet/clade");
    let has_puppet = Command::new("ruby").args(["-e", "require 'puppet'"]).output();
    let rspec = Command::new("rspec").arg("spec").current_dir(&module).output();
    match (rspec, has_puppet) {
        (Err(_), _) => eprintln!("skipped: needs rspec"),
        (Ok(rspec), Ok(puppet)) if puppet.status.success() => {
            let said = String::from_utf8_lossy(&rspec.stdout);
            assert!(rspec.status.success() && said.contains(" 0 failures"), "{said}");
        }
        _ => eprintln!("skipped: needs puppet-agent"),
    }
}

#[test]
fn the_description_of_the_module_is_complete() {
    let text = std::fs::read_to_string(root().join("examples/puppet/clade/metadata.json")).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in ["name", "version", "author", "summary", "license", "source", "dependencies"] {
        assert!(metadata.get(key).is_some(), "{key}");
    }
    assert_eq!(metadata["version"], env!("CARGO_PKG_VERSION"));
}
