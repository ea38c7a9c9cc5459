//! Facts that Facter 4 hides by default, and paths written with dots.
//!
//! Names and replacements are those of Facter 4.3, whose fact group `legacy` Puppet 8 leaves out.

use crate::model::Segment;

/// What took the place of a legacy fact.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replacement {
    /// The path below the facts.
    pub(super) path: Vec<Segment>,
    /// How its value differs from the old one.
    pub(super) note: Option<&'static str>,
}

/// Returns what took the place of a legacy fact.
pub(super) fn replacement(fact: &str) -> Option<Replacement> {
    if let Ok(at) = FACTS.binary_search_by_key(&fact, |(name, _)| name) {
        let (_, path) = FACTS.get(at)?;
        let path = path.split('.').map(|it| Segment::Key(it.into())).collect();
        let note = NOTES.iter().find(|(name, _)| *name == fact).map(|(_, note)| *note);
        return Some(Replacement { path, note });
    }
    let path = processor(fact)
        .or_else(|| ssh(fact))
        .or_else(|| of_interface(fact))
        .or_else(|| of_disk_or_zone(fact))?;
    Some(Replacement { path, note: None })
}

fn keys(keys: &[&str]) -> Vec<Segment> {
    keys.iter().map(|it| Segment::Key((*it).into())).collect()
}

/// `processor0`
fn processor(fact: &str) -> Option<Vec<Segment>> {
    let number = fact.strip_prefix("processor")?.parse().ok()?;
    let mut path = keys(&["processors", "models"]);
    path.push(Segment::Index(number));
    Some(path)
}

/// `sshrsakey`, `sshfp_rsa`
fn ssh(fact: &str) -> Option<Vec<Segment>> {
    let key = fact.strip_prefix("ssh").and_then(|it| it.strip_suffix("key"));
    let algorithm = key.or_else(|| fact.strip_prefix("sshfp_"))?;
    let field: &[&str] = if key.is_some() { &["key"] } else { &["fingerprints", "sha256"] };
    matches!(algorithm, "rsa" | "dsa" | "ecdsa" | "ed25519")
        .then(|| keys(&[&["ssh", algorithm], field].concat()))
}

/// `ipaddress_eth0`; facts of one's own, such as `network_zone`, have such names, too, so the rest
/// must look like an interface.
fn of_interface(fact: &str) -> Option<Vec<Segment>> {
    const FIELDS: &[(&str, &str)] = &[
        ("ipaddress_", "ip"),
        ("ipaddress6_", "ip6"),
        ("macaddress_", "mac"),
        ("mtu_", "mtu"),
        ("netmask_", "netmask"),
        ("netmask6_", "netmask6"),
        ("network_", "network"),
        ("network6_", "network6"),
        ("scope6_", "scope6"),
    ];
    let of = |(prefix, field)| Some((fact.strip_prefix(prefix)?, field));
    let (interface, field) = FIELDS.iter().find_map(|it| of(*it))?;
    is_interface(interface).then(|| keys(&["networking", "interfaces", interface, field]))
}

/// The beginnings of the names of interfaces, before their numbers.
const INTERFACES: &[&str] = &[
    "awdl", "bge", "bond", "br", "bridge", "cali", "cni", "docker", "dummy", "e1000g", "em", "en",
    "eno", "enp", "ens", "enx", "eth", "flannel", "hme", "ib", "igb", "ixgbe", "lo", "net", "p",
    "tap", "team", "tun", "utun", "veth", "virbr", "vlan", "vmbr", "vmnet", "vmx", "wg", "wlan",
    "wlp", "wwan", "xenbr",
];

fn is_interface(text: &str) -> bool {
    let letters = text.find(|it: char| !it.is_ascii_lowercase()).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(letters).unwrap_or((text, ""));
    let numbered = rest.starts_with(|it: char| it.is_ascii_digit());
    matches!(text, "lo" | "Ethernet" | "Wi_Fi")
        || text.starts_with("Local_Area_Connection")
        || text.starts_with("Ethernet_")
        || (numbered && INTERFACES.contains(&word))
        || (rest.starts_with('_') && matches!(word, "br" | "docker"))
        // The address of the adapter follows at once: `enx001122334455`, `vethab12cd34`.
        || ["enx", "veth", "cali"].iter().any(|it| {
            let address = text.strip_prefix(it).unwrap_or_default();
            address.len() >= 7 && address.bytes().all(|it| it.is_ascii_hexdigit())
        })
}

/// `blockdevice_sda_size`, `zone_web_status`
fn of_disk_or_zone(fact: &str) -> Option<Vec<Segment>> {
    const FIELDS: &[(&str, &[&str], &str, &str)] = &[
        ("blockdevice_", &["disks"], "_model", "model"),
        ("blockdevice_", &["disks"], "_size", "size_bytes"),
        ("blockdevice_", &["disks"], "_vendor", "vendor"),
        ("zone_", &["solaris_zones", "zones"], "_brand", "brand"),
        ("zone_", &["solaris_zones", "zones"], "_id", "id"),
        ("zone_", &["solaris_zones", "zones"], "_iptype", "ip_type"),
        ("zone_", &["solaris_zones", "zones"], "_path", "path"),
        ("zone_", &["solaris_zones", "zones"], "_status", "status"),
    ];
    FIELDS.iter().find_map(|(prefix, above, suffix, field)| {
        let name = fact.strip_prefix(prefix)?.strip_suffix(suffix)?;
        (!name.is_empty()).then(|| keys(&[above, &[name, field][..]].concat()))
    })
}

/// How some values differ from those of old.
const NOTES: &[(&str, &str)] = &[
    ("blockdevices", "its keys are the names"),
    ("interfaces", "its keys are the names"),
    ("memoryfree_mb", "in bytes"),
    ("memorysize_mb", "in bytes"),
    ("swapfree_mb", "in bytes"),
    ("swapsize_mb", "in bytes"),
    ("xendomains", "a list"),
    ("zones", "its keys are the names, not their number"),
];

/// Legacy facts by name, each with the path of the fact that took its place.
const FACTS: &[(&str, &str)] = &[
    ("architecture", "os.architecture"),
    ("augeasversion", "augeas.version"),
    ("bios_release_date", "dmi.bios.release_date"),
    ("bios_vendor", "dmi.bios.vendor"),
    ("bios_version", "dmi.bios.version"),
    ("blockdevices", "disks"),
    ("boardassettag", "dmi.board.asset_tag"),
    ("boardmanufacturer", "dmi.board.manufacturer"),
    ("boardproductname", "dmi.board.product"),
    ("boardserialnumber", "dmi.board.serial_number"),
    ("chassisassettag", "dmi.chassis.asset_tag"),
    ("chassistype", "dmi.chassis.type"),
    ("dhcp_servers", "networking.dhcp"),
    ("domain", "networking.domain"),
    ("fqdn", "networking.fqdn"),
    ("gid", "identity.group"),
    ("hardwareisa", "processors.isa"),
    ("hardwaremodel", "os.hardware"),
    ("hostname", "networking.hostname"),
    ("id", "identity.user"),
    ("interfaces", "networking.interfaces"),
    ("ipaddress", "networking.ip"),
    ("ipaddress6", "networking.ip6"),
    ("ldom_domainchassis", "ldom.domainchassis"),
    ("ldom_domaincontrol", "ldom.domaincontrol"),
    ("ldom_domainname", "ldom.domainname"),
    ("ldom_domainrole_control", "ldom.domainrole.control"),
    ("ldom_domainrole_impl", "ldom.domainrole.impl"),
    ("ldom_domainrole_io", "ldom.domainrole.io"),
    ("ldom_domainrole_root", "ldom.domainrole.root"),
    ("ldom_domainrole_service", "ldom.domainrole.service"),
    ("ldom_domainuuid", "ldom.domainuuid"),
    ("lsbdistcodename", "os.distro.codename"),
    ("lsbdistdescription", "os.distro.description"),
    ("lsbdistid", "os.distro.id"),
    ("lsbdistrelease", "os.distro.release.full"),
    ("lsbmajdistrelease", "os.distro.release.major"),
    ("lsbminordistrelease", "os.distro.release.minor"),
    ("lsbrelease", "os.distro.specification"),
    ("macaddress", "networking.mac"),
    ("macosx_buildversion", "os.macosx.build"),
    ("macosx_productname", "os.macosx.product"),
    ("macosx_productversion", "os.macosx.version.full"),
    ("macosx_productversion_major", "os.macosx.version.major"),
    ("macosx_productversion_minor", "os.macosx.version.minor"),
    ("macosx_productversion_patch", "os.macosx.version.patch"),
    ("manufacturer", "dmi.manufacturer"),
    ("memoryfree", "memory.system.available"),
    ("memoryfree_mb", "memory.system.available_bytes"),
    ("memorysize", "memory.system.total"),
    ("memorysize_mb", "memory.system.total_bytes"),
    ("netmask", "networking.netmask"),
    ("netmask6", "networking.netmask6"),
    ("network", "networking.network"),
    ("network6", "networking.network6"),
    ("operatingsystem", "os.name"),
    ("operatingsystemmajrelease", "os.release.major"),
    ("operatingsystemrelease", "os.release.full"),
    ("osfamily", "os.family"),
    ("physicalprocessorcount", "processors.physicalcount"),
    ("processorcount", "processors.count"),
    ("productname", "dmi.product.name"),
    ("rubyplatform", "ruby.platform"),
    ("rubysitedir", "ruby.sitedir"),
    ("rubyversion", "ruby.version"),
    ("scope6", "networking.scope6"),
    ("selinux", "os.selinux.enabled"),
    ("selinux_config_mode", "os.selinux.config_mode"),
    ("selinux_config_policy", "os.selinux.config_policy"),
    ("selinux_current_mode", "os.selinux.current_mode"),
    ("selinux_enforced", "os.selinux.enforced"),
    ("selinux_policyversion", "os.selinux.policy_version"),
    ("serialnumber", "dmi.product.serial_number"),
    ("sp_boot_mode", "system_profiler.boot_mode"),
    ("sp_boot_rom_version", "system_profiler.boot_rom_version"),
    ("sp_boot_volume", "system_profiler.boot_volume"),
    ("sp_cpu_type", "system_profiler.processor_name"),
    ("sp_current_processor_speed", "system_profiler.processor_speed"),
    ("sp_kernel_version", "system_profiler.kernel_version"),
    ("sp_l2_cache_core", "system_profiler.l2_cache_per_core"),
    ("sp_l3_cache", "system_profiler.l3_cache"),
    ("sp_local_host_name", "system_profiler.computer_name"),
    ("sp_machine_model", "system_profiler.model_identifier"),
    ("sp_machine_name", "system_profiler.model_name"),
    ("sp_number_processors", "system_profiler.cores"),
    ("sp_os_version", "system_profiler.system_version"),
    ("sp_packages", "system_profiler.processors"),
    ("sp_physical_memory", "system_profiler.memory"),
    ("sp_platform_uuid", "system_profiler.hardware_uuid"),
    ("sp_secure_vm", "system_profiler.secure_virtual_memory"),
    ("sp_serial_number", "system_profiler.serial_number"),
    ("sp_smc_version_system", "system_profiler.smc_version"),
    ("sp_uptime", "system_profiler.uptime"),
    ("sp_user_name", "system_profiler.username"),
    ("swapencrypted", "memory.swap.encrypted"),
    ("swapfree", "memory.swap.available"),
    ("swapfree_mb", "memory.swap.available_bytes"),
    ("swapsize", "memory.swap.total"),
    ("swapsize_mb", "memory.swap.total_bytes"),
    ("system32", "os.windows.system32"),
    ("uptime", "system_uptime.uptime"),
    ("uptime_days", "system_uptime.days"),
    ("uptime_hours", "system_uptime.hours"),
    ("uptime_seconds", "system_uptime.seconds"),
    ("uuid", "dmi.product.uuid"),
    ("windows_display_version", "os.windows.display_version"),
    ("windows_edition_id", "os.windows.edition_id"),
    ("windows_installation_type", "os.windows.installation_type"),
    ("windows_product_name", "os.windows.product_name"),
    ("windows_release_id", "os.windows.release_id"),
    ("xendomains", "xen.domains"),
    ("zonename", "solaris_zones.current"),
    ("zones", "solaris_zones.zones"),
];

/// Returns the segments that a name with dots stands for, if it looks like a path: `os.family`,
/// but not an OID such as `1.3.6.1`.
pub(super) fn dotted(name: &str) -> Option<Vec<Segment>> {
    let parts: Vec<&str> = name.split('.').collect();
    let word = |part: &&str| {
        part.starts_with(|it: char| it.is_ascii_alphabetic())
            && part.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'))
    };
    (parts.len() > 1 && parts.iter().all(word)).then(|| keys(&parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Path;
    use crate::table::each_row;

    #[test]
    fn facts_are_in_order() {
        assert!(FACTS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(NOTES.iter().all(|(note, _)| FACTS.iter().any(|(name, _)| name == note)));
    }

    #[test]
    fn legacy_facts_have_a_replacement_and_others_have_none() {
        let rows = [
            ("osfamily", "os.family"),
            ("swapsize", "memory.swap.total"),
            ("zones", "solaris_zones.zones"),
            ("processor0", "processors.models[0]"),
            ("processor12", "processors.models[12]"),
            ("processorcount", "processors.count"),
            ("sshrsakey", "ssh.rsa.key"),
            ("sshed25519key", "ssh.ed25519.key"),
            ("sshfp_ecdsa", "ssh.ecdsa.fingerprints.sha256"),
            ("ipaddress_eth0", "networking.interfaces.eth0.ip"),
            ("ipaddress6_ens3", "networking.interfaces.ens3.ip6"),
            ("macaddress_enp0s31f6", "networking.interfaces.enp0s31f6.mac"),
            ("mtu_lo", "networking.interfaces.lo.mtu"),
            ("netmask_bond0_100", "networking.interfaces.bond0_100.netmask"),
            ("network_p1p1", "networking.interfaces.p1p1.network"),
            ("netmask6_br_lan", "networking.interfaces.br_lan.netmask6"),
            ("scope6_Ethernet_2", "networking.interfaces.Ethernet_2.scope6"),
            ("ipaddress_enx001122334455", "networking.interfaces.enx001122334455.ip"),
            ("blockdevice_sda_size", "disks.sda.size_bytes"),
            ("zone_web_iptype", "solaris_zones.zones.web.ip_type"),
            ("sp_uptime", "system_profiler.uptime"),
        ];
        each_row(rows, |(fact, expected)| {
            let found = replacement(fact).unwrap_or_else(|| panic!("{fact}"));
            let path = std::iter::once(Segment::Key("fact".into())).chain(found.path);
            assert_eq!(Path::Segments(path.collect()).to_string(), expected, "{fact}");
        });
        let rows = [
            "os",
            "kernel",
            "kernelrelease",
            "virtual",
            "is_virtual",
            "timezone",
            "path",
            "filesystems",
            "role",
            "network_zone",
            "network_zone1",
            "ipaddress_public",
            "mtu_max",
            "processor",
            "processorX",
            "sshkey",
            "ssh_port_key",
            "sshfp_count",
            "zone_status",
            "zone__id",
            "blockdevice__size",
            "network_environment",
            "scope6_",
            "clientcert",
            "net_eth0",
        ];
        each_row(rows, |fact| {
            assert_eq!(replacement(fact), None, "{fact}");
        });
    }
}
