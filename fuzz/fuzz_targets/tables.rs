//! What reaches a gateway of hosts and gateways beyond its peers: requests to be served, and tables
//! that are passed on. Read and written the same.
#![no_main]

use byway_gateway::forwarded_announcements::{ForwardedPart, MAX_ADDRESSES, MAX_HOPS};
use byway_gateway::joining::{asked, is_request, request};
use byway_gateway::serves::AnnouncementPart;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(served) = asked(bytes) {
        assert!(is_request(bytes));
        assert!(served.hosts.length() == 32 || served.hosts.length() == 128, "one address");
        assert_eq!(request(&served), bytes);
    }
    if let Ok(table) = ForwardedPart::read(bytes) {
        assert!((1..=MAX_HOPS).contains(&table.hops) && table.addresses.len() <= MAX_ADDRESSES);
        assert_eq!(table.to_bytes(), bytes);
        let _ = AnnouncementPart::read(table.part);
    }
});
