//! What the settings of an environment say about where its code is.

/// Where an environment's modules and manifests are, as `environment.conf` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modulepath {
    /// The directories of modules, the first one first: where two have a module of one name, the
    /// first wins.
    pub modules: Vec<String>,
    /// The file or directory of manifests.
    pub manifests: String,
}

/// Reads `environment.conf`; what it does not say is as Puppet has it by default.
pub fn environment_settings(text: &str) -> Modulepath {
    let mut settings = Modulepath {
        modules: vec!["modules".to_owned(), "$basemodulepath".to_owned()],
        manifests: "manifests".to_owned(),
    };
    for line in text.lines() {
        let line = line.split_once('#').map_or(line, |(line, _)| line);
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim().trim_matches(['"', '\'']);
        match key.trim() {
            "modulepath" => {
                let parts = value.split(':').map(str::trim).filter(|it| !it.is_empty());
                settings.modules = parts.map(str::to_owned).collect();
            }
            "manifest" if !value.is_empty() => value.clone_into(&mut settings.manifests),
            _ => {}
        }
    }
    settings
}

/// Returns the modules that a `Puppetfile` names and the modulepath does not have.
pub fn missing_modules(puppetfile: &str, present: impl Fn(&str) -> bool) -> Vec<String> {
    let mut missing = Vec::new();
    for line in puppetfile.lines() {
        let line = line.trim_start();
        let Some(rest) = line.strip_prefix("mod").map(str::trim_start) else { continue };
        let rest = rest.strip_prefix('(').map_or(rest, str::trim_start);
        let Some(quote) = rest.chars().next().filter(|it| matches!(it, '"' | '\'')) else {
            continue;
        };
        let Some(name) = rest.split(quote).nth(1) else { continue };
        let module = name.rsplit(['/', '-']).next().unwrap_or(name);
        if !module.is_empty() && !present(module) {
            missing.push(name.to_owned());
        }
    }
    missing
}
