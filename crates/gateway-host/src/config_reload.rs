//! The reload of a running gateway's file: new rules are applied, and other changes are reported,
//! as they need a restart.

use super::config_file::GatewayConfig;
use byway_gateway::gateway_options::GATEWAY_OPTIONS;

/// Keys and tables, except the rules, that differ between the running configuration and the fresh
/// one. They take effect only after a restart.
#[must_use]
pub fn needs_start(running: &GatewayConfig, fresh: &GatewayConfig) -> Vec<&'static str> {
    // What the command line insists on holds whatever the file says.
    let insisted = |mut config: GatewayConfig| {
        config.insist(running.insisted);
        config.settings
    };
    let settings = insisted(fresh.clone());
    let differs = [
        ("key", running.key != fresh.key),
        ("listen", running.listen != fresh.listen),
        ("tun", running.tun != fresh.tun),
        ("mark", running.mark != fresh.mark),
        ("status", running.status != fresh.status),
        ("congestion", running.congestion != fresh.congestion),
        ("dscp", running.dscp != fresh.dscp),
        ("serves", running.serves != fresh.serves),
        ("registry", running.registry != fresh.registry),
        ("[[peer]]", running.peers != fresh.peers),
        ("[[guest]]", running.guests != fresh.guests),
        ("[relay]", running.relay != fresh.relay),
    ];
    let differs = differs.into_iter().filter_map(|(what, differs)| differs.then_some(what));
    let options = GATEWAY_OPTIONS.iter().filter(|option| option.differs(&running.settings, &settings));
    let mut all: Vec<_> =
        differs.chain(options.map(|option| if option.limit { "[limits]" } else { option.name })).collect();
    all.dedup();
    all
}

/// The configuration of a running gateway, with new rules from `fresh`. All other settings stay,
/// because nftables and routes were set up for them. For example, nftables exempts packets from the
/// TUN device by its name. Under another name it would capture them.
#[must_use]
pub fn with_rules(running: &GatewayConfig, fresh: &GatewayConfig) -> GatewayConfig {
    GatewayConfig { rules: fresh.rules.clone(), ..running.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const FILE: &str = r#"
[gateway]
serves = ["192.168.1.0/24"]
tun = "byway1"
mark = 77
[limits]
flows = 100
[[peer]]
name = "b"
key = "byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu"
allowed = ["192.168.2.0/24"]
[[rule]]
to-ports = [873]
"#;

    fn read(text: &str) -> GatewayConfig {
        GatewayConfig::parse(Path::new("gw.toml"), text).unwrap()
    }

    #[test]
    fn rules_alone_are_taken_over_and_the_rest_is_told() {
        let mut running = read(FILE);
        let told = |running: &GatewayConfig, from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            let fresh = read(&FILE.replace(from, to));
            let after = with_rules(running, &fresh);
            // The table, the mark and the device are those that are there.
            assert_eq!(
                (&after.tun, after.mark, &after.serves),
                (&running.tun, running.mark, &running.serves)
            );
            assert!(after.plan().ruleset.contains("table inet byway_gw_byway1 {"));
            (needs_start(running, &fresh), after.rules == fresh.rules && after.rules != running.rules)
        };
        assert_eq!(told(&running, "873", "874"), (vec![], true));
        for (from, to, what) in [
            ("byway1", "byway2", "tun"),
            ("77", "78", "mark"),
            ("192.168.1.0", "192.168.3.0", "serves"),
            ("192.168.2.0", "192.168.3.0", "[[peer]]"),
            ("flows = 100", "flows = 101", "[limits]"),
            ("flows = 100", "flows = 100\nbundles = 7", "[limits]"),
            ("mark", "bundle = \"flow\"\nmark", "bundle"),
            ("mark", "observe = true\nmark", "observe"),
            ("mark", "fail-closed = true\nmark", "fail-closed"),
            ("mark", "listen = [\"192.0.2.1\"]\nmark", "listen"),
            ("mark", "status = \"here\"\nmark", "status"),
            ("mark", "key = \"here\"\nmark", "key"),
            ("mark", "window = \"off\"\nmark", "window"),
            ("mark", "relays = \"any\"\nmark", "relays"),
            ("mark", "congestion = \"hir\"\nmark", "congestion"),
            ("mark", "dscp = \"none\"\nmark", "dscp"),
            ("mark", "dead-after = \"9s\"\nmark", "dead-after"),
            ("mark", "detours = false\nmark", "detours"),
            (
                "[[rule]]",
                "[[guest]]\nname = \"g\"\nkey = \"byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu\"\n[[rule]]",
                "[[guest]]",
            ),
            ("[limits]", "[relay]\nrate = \"1M\"\n[limits]", "[relay]"),
        ] {
            assert_eq!(told(&running, from, to), (vec![what], false));
        }
        running.insist([true, true]);
        assert_eq!(told(&running, "873", "874"), (vec![], true), "by the command line");
        assert_eq!(told(&running, "mark", "observe = true\nmark"), (vec![], false), "no matter");
    }
}
