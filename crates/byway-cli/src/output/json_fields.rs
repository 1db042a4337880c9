//! The fields of a verb's own events: an object of JSON, whose fields only the verb knows.

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// The fields of an object in their order.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// The fields of `value`, which serialises as an object.
    #[must_use]
    pub fn of(value: &impl Serialize) -> Self {
        let text = always(serde_json::to_string(value));
        always(serde_json::Deserializer::from_str(&text).deserialize_map(OrderedObject))
    }

    /// Makes an object with the one field `name`.
    #[must_use]
    pub fn one(name: &str, value: &impl Serialize) -> Self {
        Self(vec![(name.to_owned(), always(serde_json::value::to_raw_value(value)))])
    }
}

/// The value of a serialization that cannot fail: strings and numbers under string keys. Infinite
/// floats become null.
pub(super) fn always<T: Default>(outcome: serde_json::Result<T>) -> T {
    debug_assert!(outcome.is_ok(), "events are made of strings and numbers: {:?}", outcome.err());
    outcome.unwrap_or_default()
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A visitor that reads a JSON object and keeps the order of its fields.
struct OrderedObject;

impl<'de> Visitor<'de> for OrderedObject {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(Serialize)]
    struct Told {
        z: u32,
        a: Vec<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        none: Option<u32>,
        text: &'static str,
    }

    #[test]
    fn an_object_is_told_as_it_would_be_without_a_detour() {
        let told = Told { z: 1, a: vec![0.1, f64::INFINITY, 1e300], none: None, text: "\"ü\"\n" };
        let direct = serde_json::to_string(&told).unwrap();
        assert_eq!(serde_json::to_string(&Fields::of(&told)).unwrap(), direct);
        let one = serde_json::to_string(&Fields::one("told", &told)).unwrap();
        assert_eq!(one, format!("{{\"told\":{direct}}}"));
    }
}
