//! Facts that Facter no longer has by default, and paths written with dots.

/// Returns the way to a fact that took the place of a legacy fact, as the array form writes it.
pub(super) fn replacement(fact: &str) -> Option<&'static str> {
    Some(match fact {
        "architecture" => "\"os\", \"architecture\"",
        "augeasversion" => "\"augeas\", \"version\"",
        "bios_release_date" => "\"dmi\", \"bios\", \"release_date\"",
        "bios_vendor" => "\"dmi\", \"bios\", \"vendor\"",
        "bios_version" => "\"dmi\", \"bios\", \"version\"",
        "boardmanufacturer" => "\"dmi\", \"board\", \"manufacturer\"",
        "boardproductname" => "\"dmi\", \"board\", \"product\"",
        "dhcp_servers" => "\"networking\", \"dhcp\"",
        "domain" => "\"networking\", \"domain\"",
        "fqdn" => "\"networking\", \"fqdn\"",
        "hardwareisa" => "\"processors\", \"isa\"",
        "hardwaremodel" => "\"os\", \"hardware\"",
        "hostname" => "\"networking\", \"hostname\"",
        "id" => "\"identity\", \"user\"",
        "gid" => "\"identity\", \"group\"",
        "interfaces" => "\"networking\", \"interfaces\"",
        "ipaddress" => "\"networking\", \"ip\"",
        "ipaddress6" => "\"networking\", \"ip6\"",
        "lsbdistcodename" => "\"os\", \"distro\", \"codename\"",
        "lsbdistdescription" => "\"os\", \"distro\", \"description\"",
        "lsbdistid" => "\"os\", \"distro\", \"id\"",
        "lsbdistrelease" => "\"os\", \"distro\", \"release\", \"full\"",
        "lsbmajdistrelease" => "\"os\", \"distro\", \"release\", \"major\"",
        "macaddress" => "\"networking\", \"mac\"",
        "manufacturer" => "\"dmi\", \"manufacturer\"",
        "memoryfree" => "\"memory\", \"system\", \"available\"",
        "memoryfree_mb" => "\"memory\", \"system\", \"available_bytes\"",
        "memorysize" => "\"memory\", \"system\", \"total\"",
        "memorysize_mb" => "\"memory\", \"system\", \"total_bytes\"",
        "netmask" => "\"networking\", \"netmask\"",
        "network" => "\"networking\", \"network\"",
        "operatingsystem" => "\"os\", \"name\"",
        "operatingsystemmajrelease" => "\"os\", \"release\", \"major\"",
        "operatingsystemrelease" => "\"os\", \"release\", \"full\"",
        "osfamily" => "\"os\", \"family\"",
        "physicalprocessorcount" => "\"processors\", \"physicalcount\"",
        "processorcount" => "\"processors\", \"count\"",
        "productname" => "\"dmi\", \"product\", \"name\"",
        "rubyplatform" => "\"ruby\", \"platform\"",
        "rubysitedir" => "\"ruby\", \"sitedir\"",
        "rubyversion" => "\"ruby\", \"version\"",
        "selinux" => "\"os\", \"selinux\", \"enabled\"",
        "serialnumber" => "\"dmi\", \"product\", \"serial_number\"",
        "swapsize_mb" => "\"memory\", \"swap\", \"total_bytes\"",
        "uptime" => "\"system_uptime\", \"uptime\"",
        "uptime_days" => "\"system_uptime\", \"days\"",
        "uptime_hours" => "\"system_uptime\", \"hours\"",
        "uptime_seconds" => "\"system_uptime\", \"seconds\"",
        "uuid" => "\"dmi\", \"product\", \"uuid\"",
        _ => return None,
    })
}

/// Returns the segments that a name with dots stands for, if it looks like a path: `os.family`,
/// but not an OID such as `1.3.6.1`.
pub(super) fn dotted(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let word = |part: &&str| {
        part.starts_with(|it: char| it.is_ascii_alphabetic())
            && part.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'))
    };
    let looks_like_path = parts.len() > 1 && parts.iter().all(word);
    looks_like_path
        .then(|| parts.iter().map(|part| format!("\"{part}\"")).collect::<Vec<_>>().join(", "))
}
