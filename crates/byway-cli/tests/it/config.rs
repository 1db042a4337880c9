//! `gw.toml`: what it says, and the line of every mistake in it.

use byway_cli::gateway::check::CheckReport;
use byway_cli::gateway::config_file::{DEFAULT_MARK, GATEWAY_PORT, GatewayConfig, status_socket};
use byway_engine::handshake;
use byway_gateway::gateway_options::GATEWAY_OPTIONS;
use byway_gateway::kernel::DEFAULT_DEVICE;
use byway_gateway::machine::{Bundle, Settings};
use byway_gateway::path_selection::RelayPreference;
use byway_gateway::rules::Direction;
use byway_registry::word::{RegistryWord, WordKind, WordProof};
use byway_transfer::identity::{Identity, PublicKey};
use byway_transfer::secret::Secret;
use byway_wire::Duration;
use std::net::SocketAddr;
use std::path::Path;

const PEER: &str = "byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu";

fn read(text: &str) -> Result<GatewayConfig, String> {
    GatewayConfig::parse(Path::new("/etc/byway/gw.toml"), text).map_err(|error| error.to_string())
}

fn whole() -> String {
    format!(
        r#"
[gateway]
key = "gw.key"
listen = ["192.0.2.1", "[2001:db8::1]:5000"]
tun = "byway1"
mark = 4711
serves = ["192.168.1.0/24", {{ hosts = "2001:db8:1::/48", ports = [873, "8000-8010"] }}]
congestion = "hir:packets=20"
fail-closed = true
dead-after = "4s"
relays = "any"
window = "off"
bundle = "flow"

[limits]
flows = 1000
bundles = 50
entry = "4M"
reorder = "16M"
cache = "1M"
cache-of-flow = "2M"

[[peer]]
name = "harbour"
key = "{PEER}"
addresses = ["198.51.100.7:4749"]
allowed = ["192.168.2.0/24", "2001:db8:2::/48"]

[[rule]]
name = "backup"
direction = "outbound"
to-ports = [873]
"#
    )
}

#[test]
fn a_whole_file_is_read() {
    let config = read(&whole()).unwrap();
    assert_eq!(config.key.as_deref(), Some(Path::new("/etc/byway/gw.key")));
    let listen: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listen, ["192.0.2.1:4749", "[2001:db8::1]:5000"]);
    assert_eq!((config.tun.as_str(), config.mark, config.congestion.name.as_str()), ("byway1", 4711, "hir"));
    assert_eq!(config.status_socket(), Path::new("/run/byway-gateway-byway1.sock"));
    assert_eq!(config.serves.len(), 2);
    assert!(config.serves[1].has_port(8005) && !config.serves[1].has_port(80));
    assert!(config.settings.fail_closed && !config.settings.observe);
    assert_eq!(config.settings.dead_after, Duration::from_secs(4));
    assert_eq!((config.settings.flows.flows, config.settings.flows.opening), (1000, 1000));
    assert_eq!((config.settings.entry.bytes, config.settings.exit.bytes), (4 << 20, 16 << 20));
    assert_eq!((config.settings.bundle, config.settings.bundles), (Bundle::Flow, 50));
    assert_eq!(config.settings.policy.relays, RelayPreference::Any);
    assert_eq!(config.settings.window, None);
    let kept = config.settings.cache.map(|cache| (cache.bytes, cache.flow_bytes));
    assert_eq!(kept, Some((1 << 20, 1 << 20)), "of a flow no more than of all");
    assert_eq!(config.rules.rules[0].direction, Direction::Outbound);
    let [peer] = config.peers.as_slice() else { panic!("{:?}", config.peers) };
    assert_eq!((peer.name.as_str(), peer.key.to_string().as_str()), ("harbour", PEER));
    assert_eq!(
        config.elsewhere().map(|prefix| prefix.to_string()).collect::<Vec<_>>(),
        ["192.168.2.0/24", "2001:db8:2::/48"]
    );
}

#[test]
fn little_suffices() {
    let config = read("[gateway]\nserves = [\"10.0.0.0/8\"]\n").unwrap();
    assert_eq!(
        (config.tun.as_str(), config.mark, config.congestion.name.as_str()),
        (DEFAULT_DEVICE, DEFAULT_MARK, "background")
    );
    assert!(config.listen.is_empty() && config.key.is_none() && !config.exposed);
    assert_eq!(config.settings, Settings::default());
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let changed = |from: &str, to: &str| {
        let text = whole();
        assert!(text.contains(from), "{from}");
        read(&text.replacen(from, to, 1)).unwrap_err()
    };
    for (from, to, line, what) in [
        ("fail-closed", "fail_close", 9, "unknown field `fail_close`"),
        (
            "congestion = \"hir:packets=20\"",
            "congestion = \"hurry\"",
            8,
            "there is no congestion controller `hurry`",
        ),
        ("\"hir:packets=20\"", "\"hir:pockets=20\"", 8, "hir has no option pockets; it has "),
        ("\"hir:packets=20\"", "\"hir:packets\"", 8, "expected OPTION=NUMBER after the colon"),
        ("192.168.1.0/24", "192.168.1.1/24", 7, "the prefix would be 192.168.1.0/24"),
        ("[\"192.168.1.0/24\",", "[7,", 7, "expected a prefix, such as"),
        ("\"8000-8010\"", "\"8010-8000\"", 7, "the first port of a range"),
        ("mark", "dscp = \"cs1\"\nmark", 6, "sessions are not marked as `cs1`: choose one of le, none"),
        ("mark", "timer = \"hir-relative\"\nmark", 6, "unknown field `timer`"),
        ("mark", "loss = \"batched\"\nmark", 6, "unknown field `loss`"),
        ("byway1", "a device by the river", 5, "1 to 15 letters"),
        ("byway1", "..", 5, "1 to 15 letters"),
        ("4711", "254", 6, "0 and 253 to 255 are taken"),
        ("4711", "70000", 6, "u16"),
        ("\"4s\"", "\"4 fortnights\"", 10, "fortnights"),
        ("\"4s\"", "\"1h\"", 10, "between 1s and 60s"),
        ("flows = 1000", "flows = 0", 16, "at least 1"),
        ("\"4M\"", "\"4K\"", 18, "at least 128K"),
        ("192.0.2.1", "eth0", 4, "write an IP address"),
        (PEER, "byway-key-aaaa", 25, "mistyped or cut short"),
        ("198.51.100.7:4749", "198.51.100.7", 26, "invalid socket address"),
        ("198.51.100.7:4749", "0.0.0.0:4749", 24, "none that can be reached"),
        ("[\"192.168.2.0/24\", \"2001:db8:2::/48\"]", "[]", 27, "may speak for no hosts"),
        ("to-ports = [873]", "to-ports = [87300]", 32, "port"),
        ("direction = \"outbound\"", "direction = \"up\"", 31, "unknown variant `up`"),
        ("[[rule]]", "[[rules]]", 29, "unknown field `rules`"),
        ("[limits]", "[limits", 15, ""),
        ("\"any\"", "\"exclude\"", 11, "`relays` is not `exclude`: choose one of prefer, any"),
        ("\"off\"", "\"literal\"", 12, "`window` is not `literal`: choose one of delivered, off"),
        ("bundle = \"flow\"", "bundle = \"peer\"", 13, "`bundle` is not `peer`: choose one of site, flow"),
        ("bundles = 50", "bundles = 0", 17, "at least 1"),
        ("bundles = 50", "bundles = 5000", 17, "at most 4096"),
        ("cache = \"1M\"", "cache = \"1K\"", 20, "at least 128K"),
        ("cache = \"1M\"\n", "", 20, "without `cache`"),
    ] {
        let error = changed(from, to);
        assert!(error.starts_with(&format!("/etc/byway/gw.toml:{line}: ")), "{to}: {error}");
        assert!(error.contains(what), "{to}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    assert_eq!(
        read("[limits]\n").unwrap_err(),
        "/etc/byway/gw.toml:1: there is no [gateway] table: say there what this gateway serves"
    );
    assert!(read("[gateway]\nserves = []\n").unwrap_err().contains(":2: a gateway that serves no hosts"));
}

#[test]
fn peers_are_told_apart() {
    let peer = whole();
    let peer = &peer[peer.find("[[peer]]").unwrap()..peer.find("[[rule]]").unwrap()];
    let other = peer.replace(PEER, &PublicKey([3; 32]).to_string());
    assert!(read(&(whole() + &other)).unwrap_err().contains(":34: there is another peer `harbour`"));
    let other = peer.replace("harbour", "island");
    assert!(read(&(whole() + &other)).unwrap_err().contains(":35: the peer `harbour` has this key, too"));
}

#[test]
fn a_relays_word_is_kept_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gw.toml");
    let with = |word: &str| whole().replace("allowed = ", &format!("relays = [\"{word}\"]\nallowed = "));
    let read = |word: &str| GatewayConfig::parse(&file, &with(word)).map_err(|error| error.to_string());
    let error = read("byway-relay1-secretsecret").unwrap_err();
    assert!(error.contains(":27: ") && !error.contains("secretsecret"), "{error}");
    let error = read("@relay.word").unwrap_err();
    assert!(error.contains("relay.word: ") && error.contains("No such file"), "{error}");
}

#[test]
fn a_file_becomes_a_gateway() {
    let config = read(&whole()).unwrap();
    let identity = |secret| Identity::new(byway_transfer::secret::Secret::new(secret));
    let site = config.site(&identity([5; 32]), [6; 32], 7).unwrap();
    assert_eq!(
        (site.congestion.to_string().as_str(), site.serial, site.peers.len()),
        ("hir:packets=20", 7, 1)
    );
    assert_eq!(site.connection.dscp, byway_wire::Dscp::BestEffort);
    assert!(byway_gateway::machine::Gateway::new(site).is_ok());
    for (told, expected) in [
        ("", byway_wire::Dscp::LowerEffort),
        ("dscp = \"none\"\n", byway_wire::Dscp::BestEffort),
        ("congestion = \"mpath\"\n", byway_wire::Dscp::BestEffort),
        ("congestion = \"mpath\"\ndscp = \"le\"\n", byway_wire::Dscp::LowerEffort),
    ] {
        let config = read(&format!("[gateway]\nserves = [\"10.0.0.0/8\"]\n{told}")).unwrap();
        assert_eq!(config.site(&identity([5; 32]), [6; 32], 7).unwrap().connection.dscp, expected, "{told}");
    }
    let own = identity([5; 32]);
    let config = read(&whole().replace(PEER, &own.public().to_string())).unwrap();
    let error = config.site(&own, [6; 32], 7).unwrap_err();
    assert!(error.to_string().contains("this gateway's own key"), "{error}");
}

/// The text of a registry's word.
fn registry(kind: WordKind) -> String {
    let addresses = vec!["192.0.2.9:4750".parse().unwrap()];
    let proof = WordProof { number: 5, secret: Secret::new([1; 16]) };
    RegistryWord { kind, key: handshake::PublicKey([7; 32]), proof, addresses }.reveal()
}

#[test]
fn a_relay_beside_it_and_registries_are_read() {
    let [join, find] = [WordKind::Join, WordKind::Use].map(registry);
    let with = |gateway: &str, relay: &str| {
        let text = whole().replace("tun = ", &format!("{gateway}\ntun = "));
        read(&format!("{text}\n[relay]\n{relay}\n"))
    };
    let relay = format!(
        "listen = [\"192.0.2.1\"]\nadvertise = [\"198.51.100.1:99\"]\nallow-destination = [\"10.0.0.0/8\"]\nrate = \"1M\"\n\
         quota = \"2G\"\nper-day = \"3G\"\nper-month = \"4G\"\nkey = \"relay.key\"\nregistry = \"{join}\"\noperator = \"we\"\nregion = \"here\""
    );
    let config = with(&format!("registry = \"{find}\""), &relay).unwrap();
    let told = config.relay.clone().unwrap();
    assert_eq!(told.listen, ["192.0.2.1:4748".parse::<SocketAddr>().unwrap()]);
    assert_eq!(told.advertise, ["198.51.100.1:99".parse::<SocketAddr>().unwrap()]);
    let limits = [told.rate, told.quota, told.per_day, told.per_month];
    assert_eq!(limits, [Some(1 << 20), Some(2 << 30), Some(3 << 30), Some(4 << 30)]);
    assert_eq!(told.key.as_deref(), Some(Path::new("/etc/byway/relay.key")));
    assert_eq!((told.operator.as_str(), told.region.as_str()), ("we", "here"));
    assert_eq!(told.registry.map(|word| word.kind), Some(WordKind::Join));
    assert_eq!(config.registry.as_ref().map(|word| word.kind), Some(WordKind::Use));
    assert!(config.exposed, "words stand in the file");
    let lines = CheckReport::of(&config).gateway;
    let expected = "A relay beside it listens at 192.0.2.1:4748 (UDP), for its peers, and for a registry's clients, each 8.39 Mbit/s, \
                    each 2.00 GiB a day, 3.00 GiB a day in all, 4.00 GiB a month in all.";
    assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
    assert!(with("", "").unwrap().relay.unwrap().listen.is_empty(), "a table without keys is a relay");
    for (gateway, relay, expected) in [
        ("", "rates = 5", "unknown field `rates`"),
        ("", "rate = \"fast\"", "fast"),
        ("registry = \"byway-registry-x\"", "", "registry word"),
        (&format!("registry = \"{join}\""), "", "this word enrols relays"),
        ("", &format!("registry = \"{find}\""), "this word asks for relays"),
        (
            "",
            "advertise = [\"1.1.1.1\", \"1.1.1.2\", \"1.1.1.3\", \"1.1.1.4\", \"1.1.1.5\"]",
            "4 addresses at most",
        ),
    ] {
        let error = with(gateway, relay).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(!error.contains(&join[20..]) && !error.contains(&find[20..]), "a secret: {error}");
    }
}

#[test]
fn guests_are_read_and_told_apart() {
    let other = Identity::new(Secret::new([9; 32])).public().to_string();
    let with = |guests: &str| read(&format!("{}\n{guests}\n", whole()));
    let guest = |name: &str, key: &str, more: &str| {
        format!("[[guest]]\nname = \"{name}\"\nkey = \"{key}\"\n{more}\n")
    };
    let config =
        with(&guest("laptop", &other, "hosts = [\"192.168.9.0/24\"]\nports = [80, \"8000-8010\"]")).unwrap();
    let [laptop] = config.guests.as_slice() else { panic!("{:?}", config.guests) };
    assert!(laptop.ports[1].contains(8005) && laptop.hosts[0].contains([192, 168, 9, 1].into()));
    let expected =
        "The guest laptop may ask to be served at its own address, in 192.168.9.0/24, ports 80, 8000-8010.";
    assert!(CheckReport::of(&config).gateway.iter().any(|line| line == expected));
    // Routes are there for guests that may come; what is taken follows those that have.
    let without = read(&whole()).unwrap().plan();
    assert_eq!(config.plan().ruleset, without.ruleset);
    let joined = config.plan_for(&["192.168.9.7".parse().unwrap()]);
    assert!(joined.ruleset.contains("192.168.9.7"), "{}", joined.ruleset);
    // A gateway may serve nobody but guests.
    let alone = "[gateway]\ntun = \"byway1\"\n[[peer]]\nname = \"b\"\nkey = \"KEY\"\nallowed = [\"10.0.0.0/8\"]\n[[rule]]\n"
        .replace("KEY", PEER);
    let served = read(&format!("{alone}{}", guest("laptop", &other, ""))).unwrap();
    assert_eq!((served.serves.len(), served.plan().routing.len()), (0, 1));
    assert!(read(&alone).unwrap_err().contains("missing field `serves`"));
    for (guests, expected) in [
        (guest("a", &other, "") + &guest("a", PEER, ""), "there is another guest `a`"),
        (guest("a", &other, "") + &guest("b", &other, ""), "the guest `a` has this key, too"),
        (guest("a", "byway-key-x", ""), "key"),
        (guest("a", &other, "port = 5"), "unknown field `port`"),
    ] {
        let error = with(&guests).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn the_example_of_the_manual_means_what_it_says() {
    let manual = include_str!("../../../../docs/gateway.md");
    let example = manual.split("```toml gw.toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let config = read(example).unwrap();
    assert_eq!(config.settings, Settings::default(), "what is written as a default is one");
    for option in GATEWAY_OPTIONS {
        let key = format!("{} = ", option.name);
        let line = example.lines().find(|line| line.trim_start_matches("# ").starts_with(&key));
        let (_, comment) = line.and_then(|line| line.rsplit_once("# ")).unwrap_or_default();
        assert!(comment.starts_with(&option.explained()), "{key}{}: not in the example", option.explained());
    }
    assert_eq!(
        (config.tun.as_str(), config.mark, config.congestion.name.as_str()),
        (DEFAULT_DEVICE, DEFAULT_MARK, "background")
    );
    assert_eq!(config.status_socket(), status_socket(DEFAULT_DEVICE));
    assert_eq!(config.listen, [GATEWAY_PORT; 2].map(|port| SocketAddr::new([0; 4].into(), port))[..1]);
    assert_eq!((config.peers.len(), config.rules.rules.len()), (1, 3));
    let findings = CheckReport::of(&config).findings;
    assert!(findings.is_empty(), "{findings:?}");
}
