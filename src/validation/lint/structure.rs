//! Values of which it is known that they are mappings or lists.

use crate::model::Segment;

/// What stands at a path on every node, if anything does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Structure {
    /// A mapping, with a key that it has.
    Mapping(&'static str),
    /// A list.
    List,
}

/// Returns what stands at a path below `fact` or `trusted`, as far as Facter 4 and Puppet fix it.
pub(super) fn structure(root: &str, path: &[Segment]) -> Option<Structure> {
    let known = if root == "trusted" { TRUSTED } else { FACTS };
    let Segment::Key(first) = path.first()? else { return None };
    // They are in order: only those that begin so are taken apart.
    let begin = known.partition_point(|(pattern, _)| *pattern < first.as_ref());
    let mut so = known.iter().skip(begin).take_while(|(it, _)| it.starts_with(first.as_ref()));
    so.find(|(pattern, _)| fits(pattern, path)).map(|(_, structure)| *structure)
}

/// Returns whether a path is as written, with `*` for any key.
fn fits(pattern: &str, path: &[Segment]) -> bool {
    let mut parts = pattern.split('.');
    let fits = |segment: &Segment| match (parts.next(), segment) {
        (Some(part), Segment::Key(key)) => part == "*" || part == key.as_ref(),
        _ => false,
    };
    path.iter().all(fits) && parts.next().is_none()
}

use Structure::{List, Mapping};

const TRUSTED: &[(&str, Structure)] =
    &[("extensions", Mapping("pp_role")), ("external", Mapping("…"))];

const FACTS: &[(&str, Structure)] = &[
    ("augeas", Mapping("version")),
    ("cloud", Mapping("provider")),
    ("disks", Mapping("sda")),
    ("disks.*", Mapping("size_bytes")),
    ("dmi", Mapping("manufacturer")),
    ("dmi.bios", Mapping("vendor")),
    ("dmi.board", Mapping("product")),
    ("dmi.chassis", Mapping("type")),
    ("dmi.product", Mapping("name")),
    ("hypervisors", Mapping("kvm")),
    ("hypervisors.*", Mapping("…")),
    ("identity", Mapping("user")),
    ("ldom", Mapping("domainname")),
    ("ldom.domainrole", Mapping("control")),
    ("load_averages", Mapping("1m")),
    ("memory", Mapping("system")),
    ("memory.swap", Mapping("total_bytes")),
    ("memory.system", Mapping("total_bytes")),
    ("mountpoints", Mapping("/")),
    ("mountpoints.*", Mapping("filesystem")),
    ("mountpoints.*.options", List),
    ("networking", Mapping("ip")),
    ("networking.interfaces", Mapping("eth0")),
    ("networking.interfaces.*", Mapping("ip")),
    ("networking.interfaces.*.bindings", List),
    ("networking.interfaces.*.bindings6", List),
    ("os", Mapping("family")),
    ("os.distro", Mapping("codename")),
    ("os.distro.release", Mapping("major")),
    ("os.macosx", Mapping("version")),
    ("os.macosx.version", Mapping("major")),
    ("os.release", Mapping("major")),
    ("os.selinux", Mapping("enabled")),
    ("os.windows", Mapping("product_name")),
    ("partitions", Mapping("/dev/sda1")),
    ("partitions.*", Mapping("size_bytes")),
    ("processors", Mapping("count")),
    ("processors.models", List),
    ("ruby", Mapping("version")),
    ("solaris_zones", Mapping("current")),
    ("solaris_zones.zones", Mapping("…")),
    ("solaris_zones.zones.*", Mapping("status")),
    ("ssh", Mapping("rsa")),
    ("ssh.*", Mapping("type")),
    ("ssh.*.fingerprints", Mapping("sha256")),
    ("system_profiler", Mapping("model_name")),
    ("system_uptime", Mapping("days")),
    ("xen", Mapping("domains")),
    ("xen.domains", List),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_in_order() {
        for known in [TRUSTED, FACTS] {
            assert!(known.is_sorted_by_key(|(pattern, _)| *pattern));
        }
    }
}
