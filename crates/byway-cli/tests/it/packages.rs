//! What packages are made of. `.ci/installed` installs them.

use crate::common::pages::project;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn read(path: &str) -> String {
    fs::read_to_string(project().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of the units of a host (`system`) or of a person (`user`).
fn units(kind: &str) -> BTreeSet<String> {
    let folder = project().join("contrib/systemd").join(kind);
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn both_packages_hold_the_same_files_and_each_is_there() {
    let manifest = read("crates/byway-cli/Cargo.toml");
    let (_, deb) = manifest.split_once("[package.metadata.deb]").unwrap();
    let (deb, rpm) = deb.split_once("[package.metadata.generate-rpm]").unwrap();
    let sources = |section: &str| -> BTreeSet<String> {
        let (_, assets) = section.split_once("assets = [").unwrap();
        let (assets, _) = assets.split_once("\n]").unwrap();
        let quoted = assets.lines().filter_map(|line| line.split('"').nth(1).map(str::to_owned));
        // A .deb has its licences in one file.
        quoted.filter(|source| !source.contains("LICENSE")).collect()
    };
    let (deb, rpm) = (sources(deb), sources(rpm));
    assert_eq!(deb, rpm);
    assert!(deb.len() > 8, "{deb:?}");
    for source in deb.iter().filter_map(|source| source.strip_prefix("../../")) {
        if source.starts_with("target/") {
            assert!(read(".ci/release").contains("package=$PWD/target/package"));
            continue;
        }
        let path = project().join(source.trim_end_matches("/*"));
        assert!(path.exists(), "{source}");
    }
}

#[test]
fn scripts_of_packages_are_shell() {
    for script in ["debian/postinst", "debian/prerm", "debian/postrm", "rpm/post", "rpm/preun", "rpm/postun"]
    {
        let path = project().join("contrib").join(script);
        assert!(Command::new("sh").arg("-n").arg(path).status().unwrap().success(), "{script}");
    }
}

#[test]
fn units_are_confined_alike_and_in_the_page() {
    let page = read("docs/services.md");
    let host = units("system");
    let person = units("user");
    // A host has one receiver, which all write to; a person may have several.
    let alone: Vec<&String> = person.difference(&host).collect();
    assert_eq!(alone, ["byway-recv@.service"]);
    assert!(!person.contains("byway-gateway.service"), "{person:?}");
    for unit in host.union(&person) {
        let name = unit.trim_end_matches(".service");
        let name = if name.ends_with('@') { format!("{name}NAME") } else { name.to_owned() };
        assert!(page.contains(&format!("| `{name}`")), "{name}");
    }
    for (kind, units) in [("system", &host), ("user", &person)] {
        let text = |unit: &str| read(&format!("contrib/systemd/{kind}/{unit}"));
        let relay = text("byway-relay.service");
        // What follows this line confines.
        let (_, rules) = relay.split_once("LimitCORE=0\n").unwrap();
        let rules: Vec<&str> = rules.lines().take_while(|line| !line.is_empty()).collect();
        assert!(rules.len() >= 10, "{rules:?}");
        for unit in units {
            let text = text(unit);
            let lacks: Vec<&str> = rules
                .iter()
                .copied()
                .filter(|rule| !rule.starts_with('#') && !text.lines().any(|line| line == *rule))
                .collect();
            let expected: &[&str] = match unit.as_str() {
                "byway-gateway.service" => &[
                    "CapabilityBoundingSet=",
                    "AmbientCapabilities=",
                    "ProtectKernelTunables=yes",
                    "PrivateDevices=yes",
                    "RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX",
                ],
                _ => &[],
            };
            assert_eq!(lacks, expected, "{kind}/{unit}");
            assert!(text.contains("Type=notify\n") && text.contains("\nRestart=always\n"), "{kind}/{unit}");
        }
    }
}
