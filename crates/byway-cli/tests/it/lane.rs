//! `byway lane --observe`.

use crate::common::{Place, Running};

#[test]
fn who_observes_the_uplink_is_told_each_second_and_changes_nothing() {
    let place = Place::new();
    let mut observer = Running::start(place.command("here", &["lane", "--observe", "--json"]));
    let said = [observer.event("uplink"), observer.event("uplink")];
    for event in said {
        // A host without a default route has no uplink.
        let uplink = &event["uplink"];
        assert!(
            uplink.is_null() || uplink["most_sent_bps"].as_u64() >= uplink["sent_bps"].as_u64(),
            "{event}"
        );
    }
    observer.signal("INT");
    assert_eq!(observer.end().code, Some(130));
    let clash = place.run("here", &["lane", "--observe", "--socks", "0"]);
    assert_eq!(clash.code, Some(2), "{}", clash.stderr);
}
