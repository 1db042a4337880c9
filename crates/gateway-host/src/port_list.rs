//! Ports as a part of a sentence.

/// `, ports 80, 443`; nothing if no port is named.
#[must_use]
pub fn with_ports(ports: &[String]) -> String {
    if ports.is_empty() { String::new() } else { format!(", ports {}", ports.join(", ")) }
}
