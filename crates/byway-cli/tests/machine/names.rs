//! A receiver whose address changes is followed by its name.
//!
//! ```text
//!   sender 10.84.1.1 ─── hub ─── receiver 10.84.2.1, later 10.84.2.77
//! ```
//!
//! The hub lets packets in to the sender only if they answer others. So nothing of what the
//! receiver sends from its new address arrives before the sender has looked its name up. Needs root
//! and `ip`, `nft`; otherwise the tests are reported as ignored.

use crate::common::machine::{PATIENCE, missing, test, wait_for};
use crate::common::parcel::Parcel;
use crate::common::spaces::Spaces;
use byway_transfer::ticket::Ticket;
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::PathBuf;

const SENDER: &str = "10.84.1.1";
const RECEIVER: &str = "10.84.2.1";
const RECEIVER_LATER: &str = "10.84.2.77";
const HUB: &str = "10.84.2.254";
const NAME: &str = "nas.example.org";

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![test("names::a_sender_follows_a_receiver_to_its_new_address", lacks, follows)]
}

/// The hosts file of one network namespace; gone when dropped.
struct HostsFile(PathBuf);

impl HostsFile {
    fn new(space: &str) -> Self {
        let directory = PathBuf::from("/etc/netns").join(space);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    /// The file stays the same one: programs that run see what is written.
    fn leads_to(&self, address: &str) {
        fs::write(self.0.join("hosts"), format!("{address} {NAME}\n")).unwrap();
    }
}

impl Drop for HostsFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        // Fails while other namespaces have files.
        let _ = fs::remove_dir("/etc/netns");
    }
}

fn follows() -> Result<(), Failed> {
    let spaces = Spaces::star("n", &[("from", SENDER), ("to", RECEIVER)]);
    let table = "add table inet n; add chain inet n pass { type filter hook forward priority 0; }; \
                 add rule inet n pass oifname to-from ct state new drop";
    spaces.says("hub", &["nft", table]);
    let hosts = HostsFile::new(&spaces.name("from"));
    hosts.leads_to(RECEIVER);
    let parcel = Parcel::new(8 << 20);
    let into = parcel.destination().display().to_string();
    let receive = ["recv", &into, "--no-tcp", "--listen", "0.0.0.0:4747", "--advertise", NAME];
    let mut receiver = spaces.byway("to", &parcel.state("to"), &receive);
    let ticket: Ticket = receiver.event("ready")["ticket"].as_str().unwrap().parse().unwrap();
    let ticket = Ticket { addresses: Vec::new(), ..ticket }.to_string();
    let file = parcel.file();
    let send = ["send", &file, &ticket, "--no-tcp", "--bwlimit", "8Mbit"];
    let mut sender = spaces.byway("from", &parcel.state("from"), &send);
    let begun = wait_for(PATIENCE, || {
        (sender.event("progress")["bytes"].as_u64().unwrap_or_default() > 0).then_some(())
    });
    assert!(begun.is_some(), "nothing arrives");
    // A provider gives the line another address, and dynamic DNS learns of it.
    spaces.says("to", &["ip", "address", "flush", "dev", "eth0"]);
    spaces.says("to", &["ip", "address", "add", &format!("{RECEIVER_LATER}/24"), "dev", "eth0"]);
    spaces.says("to", &["ip", "route", "add", "default", "via", HUB]);
    hosts.leads_to(RECEIVER_LATER);
    let result = sender.event("result");
    assert_eq!(result["exit"], 0, "{result}");
    parcel.arrived();
    // The ticket is as good as before for who comes now.
    let pinged = spaces.byway("from", &parcel.state("from"), &["ping", &ticket, "--no-tcp"]).event("result");
    assert_eq!(pinged["exit"], 0, "{pinged}");
    Ok(())
}
