//! What a gateway prints on a host where it cannot run. Such a gateway must leave nothing behind. A
//! gateway must also run with only the privileges that it needs.
//!
//! Needs root and `ip`, `nft`, `setpriv`, `unshare`.

use crate::common::machine::{PATIENCE, missing, must, test, wait_for};
use crate::common::spaces::Spaces;
use crate::common::{Place, Running, for_anybody};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

/// Nobody's number.
const NOBODY: u32 = 65_534;

pub fn tests() -> Vec<Trial> {
    let possible = Spaces::possible(&["nft list tables", "unshare -m true", "setpriv --reuid=65534 true"])
        && Path::new("/dev/net/tun").exists();
    let lacks =
        missing(possible, "it needs root, /dev/net/tun and the programs ip, nft, setpriv and unshare");
    vec![
        test("refusals::without_the_privilege_it_says_which", lacks, unprivileged),
        test("refusals::with_that_privilege_alone_it_runs_and_leaves_nothing", lacks, one_privilege),
        test("refusals::a_missing_program_is_told_with_its_package", lacks, missing_programs),
        test("refusals::the_name_of_a_device_in_use_is_told", lacks, names_in_use),
        test("refusals::a_port_in_use_is_told", lacks, ports_in_use),
        test("refusals::what_is_where_it_would_answer_is_left_alone", lacks, files_in_the_way),
        test("refusals::of_a_root_it_keeps_that_privilege_alone", lacks, all_privileges),
        test("refusals::checking_tells_what_would_stop_it_here", lacks, checked),
    ]
}

const CONFIG: &str = r#"
[gateway]
serves = ["10.91.1.0/24"]
status = "gw.sock"
[[peer]]
name = "b"
key = "byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu"
allowed = ["10.91.2.0/24"]
[[rule]]
"#;

/// A host that is to be a gateway, and a directory for it that everybody may use.
struct Host {
    spaces: Spaces,
    place: Place,
}

impl Host {
    fn new(tag: &str) -> Self {
        let host = Self { spaces: Spaces::new(tag, &["gw"]), place: Place::new() };
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        open(&host.place.path(""), 0o777);
        fs::write(host.place.path("gw.toml"), CONFIG).unwrap();
        for_anybody(&host.place.path("byway"));
        fs::create_dir(host.place.path("state")).unwrap();
        chown(host.place.path("state"), Some(NOBODY), Some(NOBODY)).unwrap();
        host.spaces.says("gw", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        host
    }

    /// The gateway, run by what `before` says.
    fn gateway(&self, before: &[&str]) -> Command {
        let [byway, state, file] = ["byway", "state", "gw.toml"].map(|name| self.place.path(name));
        let mut command = self.spaces.on("gw");
        command.args(before).arg(byway).arg("--json").arg("--state-dir").arg(state);
        command.args(["gateway", "--config"]).arg(file);
        command.env("BYWAY_RUNTIME_DIR", self.place.path("run"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// It ends with this code, says these words, and leaves nothing but what was there before.
    #[track_caller]
    fn refuses(&self, before: &[&str], code: i32, words: &str) {
        let found = self.installed();
        let ended = Running::start(self.gateway(before)).end();
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let told = ended.result()["error"].as_str().unwrap_or_default().to_owned();
        assert!(told.contains(words), "{told}");
        assert_eq!(self.installed(), found);
    }

    /// What is in the kernel.
    fn installed(&self) -> String {
        self.spaces.says("gw", &["sh", "-c", "nft list ruleset; ip -o rule; ip -o -6 rule; ip -o link"])
    }
}

/// Everything that needs a privilege, without any.
const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn unprivileged() -> Result<(), Failed> {
    Host::new("u").refuses(&AS_NOBODY, 6, "CAP_NET_ADMIN");
    Ok(())
}

fn one_privilege() -> Result<(), Failed> {
    let host = Host::new("p");
    let before = host.installed();
    // The device file as most systems have it, for this process alone.
    let script = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec \"$0\" \"$@\"";
    let mounts = ["unshare", "-m", "sh", "-c", script];
    let more = ["--inh-caps=+net_admin", "--ambient-caps=+net_admin", "--bounding-set=-all,+net_admin"];
    let manager = host.place.path("notify");
    let told = UnixDatagram::bind(&manager)?;
    told.set_nonblocking(true)?;
    fs::set_permissions(&manager, fs::Permissions::from_mode(0o777))?;
    let mut command = host.gateway(&[&mounts, &AS_NOBODY[..], &more].concat());
    command.env("NOTIFY_SOCKET", &manager);
    let mut running = Running::start(command);
    let ready: serde_json::Value = serde_json::from_str(&running.line())?;
    assert_eq!(ready["event"], "ready", "{ready}");
    let of = fs::read_to_string(format!("/proc/{}/status", running.id()))?;
    let line = |name: &str| of.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    // CAP_NET_ADMIN is the twelfth bit.
    assert_eq!(u64::from_str_radix(&line("CapEff:"), 16)?, 1 << 12);
    assert!(line("Uid:").starts_with("65534"), "{}", line("Uid:"));
    let during = host.installed();
    assert!(
        during.contains("byway_gw") && during.contains("0x6277") && during.contains("byway0"),
        "{during}"
    );
    running.interrupt();
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(host.installed(), before);
    // What systemd would have been told.
    for state in ["READY=1", "STOPPING=1"] {
        let mut buffer = [0; 64];
        let count = told.recv(&mut buffer)?;
        assert_eq!(&buffer[..count], state.as_bytes());
    }
    Ok(())
}

fn missing_programs() -> Result<(), Failed> {
    let host = Host::new("m");
    for (missing, kept, package) in [("nft", "ip", "nftables"), ("ip", "nft", "iproute2")] {
        // For this process alone, where the program is there is nothing but the other.
        let script = format!(
            "place=$(dirname \"$(readlink -f \"$(command -v {missing})\")\") && mkdir '{0}' && \
             cp \"$(command -v {kept})\" '{0}' && mount --bind '{0}' \"$place\" && exec \"$0\" \"$@\"",
            host.place.path(package).display()
        );
        let words = format!("the program {missing} is missing: install the package {package}");
        host.refuses(&["unshare", "-m", "sh", "-c", &script], 1, &words);
    }
    Ok(())
}

fn names_in_use() -> Result<(), Failed> {
    let host = Host::new("n");
    host.spaces.says("gw", &["ip", "tuntap", "add", "byway0", "mode", "tun"]);
    host.refuses(&[], 1, "`ip tuntap del byway0 mode tun`");
    host.spaces.says("gw", &["ip", "tuntap", "del", "byway0", "mode", "tun"]);
    host.spaces.says("gw", &["ip", "link", "add", "byway0", "type", "veth", "peer", "other"]);
    host.refuses(&[], 1, "a device byway0 of another kind");
    host.spaces.says("gw", &["ip", "link", "del", "byway0"]);
    let mut first = Running::start(host.gateway(&[]));
    first.line();
    host.refuses(&[], 1, "the device byway0 is used by another program");
    Ok(())
}

fn ports_in_use() -> Result<(), Failed> {
    let host = Host::new("q");
    let _taken = host.spaces.at("gw", || std::net::UdpSocket::bind("0.0.0.0:4749").unwrap());
    host.refuses(&[], 1, "4749");
    Ok(())
}

fn files_in_the_way() -> Result<(), Failed> {
    let host = Host::new("f");
    let socket = host.place.path("gw.sock");
    fs::write(&socket, "precious")?;
    host.refuses(&[], 1, "exists and is not a socket: choose another path with `status`");
    assert_eq!(fs::read_to_string(&socket)?, "precious");
    fs::remove_file(&socket)?;
    // Another gateway, by another device.
    let other = std::os::unix::net::UnixListener::bind(&socket)?;
    host.refuses(&[], 1, "another gateway answers at");
    // Dead by now: that is replaced.
    drop(other);
    // On a busy machine the device of the gateway that was refused goes a little later.
    let started = wait_for(PATIENCE, || {
        let mut running = Running::start(host.gateway(&[]));
        running.line().contains("ready").then_some(running)
    });
    let running = started.expect("a gateway that is ready");
    let found = fs::symlink_metadata(&socket)?.ino();
    host.refuses(&[], 1, "the device byway0 is used by another program");
    assert_eq!(fs::symlink_metadata(&socket)?.ino(), found, "nobody took it away");
    running.interrupt();
    assert_eq!(running.end().code, Some(130));
    Ok(())
}

fn all_privileges() -> Result<(), Failed> {
    let host = Host::new("a");
    let mut running = Running::start(host.gateway(&[]));
    running.line();
    let of = |file: String| -> Vec<u64> {
        let status = fs::read_to_string(file).unwrap();
        let line =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        ["CapEff:", "CapPrm:", "CapBnd:"].map(|name| u64::from_str_radix(&line(name), 16).unwrap()).to_vec()
    };
    let all = of("/proc/self/status".to_owned());
    assert!(all.iter().all(|set| set.count_ones() > 1), "or this test sees nothing");
    // All its threads: each has its own.
    let threads = fs::read_dir(format!("/proc/{}/task", running.id()))?;
    let threads: Vec<_> = threads.map(|thread| thread.unwrap().path().join("status")).collect();
    assert!(threads.len() > 1);
    for thread in threads {
        assert_eq!(of(thread.to_str().unwrap().to_owned()), [1 << 12; 3], "{}", thread.display());
    }
    // The thread that answers `byway status` is one of them.
    let mut status = host.place.command("state", &["status", "--json"]);
    let told = status.env("BYWAY_RUNTIME_DIR", host.place.path("run")).output()?;
    let told = String::from_utf8(told.stdout)?;
    assert!(told.contains(r#""verb":"gateway""#), "{told}");
    running.interrupt();
    assert_eq!(running.end().code, Some(130));
    Ok(())
}

fn checked() -> Result<(), Failed> {
    let host = Host::new("k");
    let [byway, state, file] = ["byway", "state", "gw.toml"].map(|name| host.place.path(name));
    let run = |before: &[&str], words: &[&str]| {
        let mut command = host.spaces.on("gw");
        must(command.args(before).arg(&byway).arg("--state-dir").arg(&state).args(words))
    };
    let check = ["gateway", "check", file.to_str().unwrap()];
    let told = run(&[], &check);
    assert!(!told.contains("On this host:") && !told.contains("To look at:"), "{told}");
    // Nothing is made, a key least of all.
    assert_eq!(fs::read_dir(&state)?.count(), 0);
    let script = format!(
        "place=$(dirname \"$(readlink -f \"$(command -v nft)\")\") && mkdir '{0}' && cp \"$(command -v ip)\" '{0}' && \
         mount --bind '{0}' \"$place\" && exec \"$0\" \"$@\"",
        host.place.path("empty").display()
    );
    let told = run(&["unshare", "-m", "sh", "-c", &script], &check);
    assert!(told.contains("- the program nft is missing: install the package nftables"), "{told}");
    assert!(!told.contains("- the program ip"), "{told}");
    let told = run(&[&AS_NOBODY[..], &["--inh-caps=-all"]].concat(), &check);
    assert!(told.contains("- a gateway needs CAP_NET_ADMIN"), "{told}");
    let own = run(&[], &["id"]);
    let text = fs::read_to_string(&file)?;
    let key = text.lines().find(|line| line.starts_with("key")).unwrap();
    fs::write(&file, text.replace(key, &format!("key = \"{}\"", own.trim())))?;
    let told = run(&[], &check);
    assert!(
        told.contains("the peer `b` has this gateway's own key: write what `byway id` prints over there"),
        "{told}"
    );
    host.refuses(&[], 2, "this gateway's own key");
    Ok(())
}
