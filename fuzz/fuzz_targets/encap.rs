//! What one gateway tells another: read and written the same, and announcements remembered within
//! bounds.
#![no_main]

use byway_gateway::Prefix;
use byway_gateway::encap::Message;
use byway_gateway::serves::{AnnouncementPart, Directory, announce};
use byway_wire::Writer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|datagram: &[u8]| {
    let Ok(message) = Message::read(datagram) else { return };
    let mut buffer = vec![0; datagram.len()];
    let mut writer = Writer::new(&mut buffer);
    message.write(&mut writer);
    assert!(!writer.overflowed());
    assert_eq!(writer.written(), datagram);

    let Message::Serves { part } = message else { return };
    let Ok(part) = AnnouncementPart::read(part) else { return };
    let again = announce(part.serial, &part.entries).expect("what fits one part");
    let entries: Vec<_> =
        again.iter().flat_map(|part| AnnouncementPart::read(part).unwrap().entries).collect();
    assert_eq!(entries, part.entries);

    let mut directory = Directory::new();
    let allowed = [Prefix::of([10, 0, 0, 0].into(), 8), Prefix::of([0x20; 16].into(), 3)];
    directory.on_part(1, part.clone(), &allowed);
    for entry in &part.entries {
        let port = entry.ports.first().map_or(80, |ports| ports.first());
        let may = allowed.iter().any(|prefix| prefix.covers(&entry.hosts)) && part.parts == 1;
        let covered = allowed.iter().any(|prefix| prefix.contains(entry.hosts.address()));
        let found = directory.find(entry.hosts.address(), port);
        assert!(!may || found == Some(1), "{entry:?}");
        assert!(covered || found.is_none(), "{entry:?}");
    }
    directory.forget(1);
    assert!(directory.served_by(1).next().is_none());
});
