//! Where things are on a globe, and how long light takes between them.

use super::super::parameters::dice;

/// A city with exchange points.
#[derive(Clone, Copy, Debug)]
pub(super) struct City {
    pub(super) name: &'static str,
    pub(super) continent: u8,
    /// The share of the Internet's edge near the city, relative to other cities.
    pub(super) weight: f64,
    pub(super) place: Location,
}

/// A place: degrees north and east.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Location {
    north: f64,
    east: f64,
}

const fn city(name: &'static str, continent: u8, weight: f64, north: f64, east: f64) -> City {
    City { name, continent, weight, place: Location { north, east } }
}

/// Cities with exchange points. Continents are `0` North America, `1` Europe, `2` Asia, `3` South
/// America, `4` Africa and `5` Oceania. Coordinates are exact to a degree. Weights are guesses,
/// higher for cities near hosts of research networks.
pub(super) const EXCHANGE_CITIES: [City; 30] = [
    city("newyork", 0, 6.0, 41.0, -74.0),
    city("ashburn", 0, 5.0, 39.0, -77.0),
    city("chicago", 0, 4.0, 42.0, -88.0),
    city("dallas", 0, 3.0, 33.0, -97.0),
    city("losangeles", 0, 5.0, 34.0, -118.0),
    city("seattle", 0, 3.0, 48.0, -122.0),
    city("miami", 0, 2.0, 26.0, -80.0),
    city("toronto", 0, 2.0, 44.0, -79.0),
    city("london", 1, 5.0, 51.0, 0.0),
    city("amsterdam", 1, 4.0, 52.0, 5.0),
    city("frankfurt", 1, 5.0, 50.0, 9.0),
    city("paris", 1, 4.0, 49.0, 2.0),
    city("madrid", 1, 2.0, 40.0, -4.0),
    city("milan", 1, 2.0, 45.0, 9.0),
    city("stockholm", 1, 2.0, 59.0, 18.0),
    city("warsaw", 1, 2.0, 52.0, 21.0),
    city("moscow", 1, 2.0, 56.0, 38.0),
    city("tokyo", 2, 4.0, 36.0, 140.0),
    city("seoul", 2, 2.0, 38.0, 127.0),
    city("hongkong", 2, 3.0, 22.0, 114.0),
    city("taipei", 2, 1.5, 25.0, 121.0),
    city("singapore", 2, 3.0, 1.0, 104.0),
    city("mumbai", 2, 2.0, 19.0, 73.0),
    city("dubai", 2, 1.0, 25.0, 55.0),
    city("saopaulo", 3, 2.5, -24.0, -47.0),
    city("buenosaires", 3, 1.0, -35.0, -58.0),
    city("johannesburg", 4, 1.0, -26.0, 28.0),
    city("nairobi", 4, 0.5, -1.0, 37.0),
    city("sydney", 5, 1.5, -34.0, 151.0),
    city("auckland", 5, 0.5, -37.0, 175.0),
];

/// Kilometres that light goes in a fibre in a millisecond.
const FIBRE_KM_PER_MS: f64 = 204.0;
/// The factor by which a cable is longer than the shortest line on the globe. With detours of
/// routes, a round trip is about 2.1 times that of a straight fibre (rule of thumb of Bozkurt et
/// al., 2018).
const CABLE_DETOUR_FACTOR: f64 = 1.25;

impl Location {
    /// The length of the shortest line on the globe, in kilometres. It follows the haversine
    /// formula for a sphere of 6 371 km.
    pub(super) fn distance(self, other: Self) -> f64 {
        let radians = |degrees: f64| degrees * core::f64::consts::PI / 180.0;
        let half = |a: f64, b: f64| {
            let sine = libm::sin(radians(a - b) / 2.0);
            sine * sine
        };
        let parallels = libm::cos(radians(self.north)) * libm::cos(radians(other.north));
        let chord = half(self.north, other.north) + parallels * half(self.east, other.east);
        2.0 * 6_371.0 * libm::asin(libm::sqrt(chord.min(1.0)))
    }

    /// Returns the solar time at this place, in hours from 0 to below 24, at `hour` in UTC.
    pub(super) fn local_hour(self, hour: usize) -> f64 {
        /// Degrees that the Earth turns in an hour.
        const DEGREES_PER_HOUR: f64 = 15.0;
        let local = hour as f64 + self.east / DEGREES_PER_HOUR;
        local - 24.0 * libm::floor(local / 24.0)
    }

    /// The propagation delay in milliseconds. It includes 0.1 ms for equipment at the ends.
    pub(super) fn ms(self, other: Self) -> f64 {
        0.1 + self.distance(other) * CABLE_DETOUR_FACTOR / FIBRE_KM_PER_MS
    }
}

/// A city for this node, by weight, and a place up to some hundred kilometres off.
pub(super) fn settle(seed: u64, node: &str) -> (City, Location) {
    let mut random = dice(seed, &format!("place {node}"));
    let total: f64 = EXCHANGE_CITIES.iter().map(|city| city.weight).sum();
    let mut left = random.unit() * total;
    let mut chosen = EXCHANGE_CITIES[0];
    for city in EXCHANGE_CITIES {
        chosen = city;
        left -= city.weight;
        if left < 0.0 {
            break;
        }
    }
    // Two draws each: near the city more often than far.
    let mut off = || (random.unit() + random.unit() - 1.0) * 6.0;
    let place = Location { north: chosen.place.north + off(), east: chosen.place.east + off() };
    (chosen, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_globe() {
        let between = |a: &str, b: &str| {
            let find = |name: &str| EXCHANGE_CITIES.iter().find(|city| city.name == name).unwrap().place;
            find(a).distance(find(b))
        };
        // Distances along the shortest line, to the degree that the places are given in, are 5 570
        // km, 8 800 km and 340 km.
        assert!((between("newyork", "london") - 5_570.0).abs() < 80.0);
        assert!((between("tokyo", "losangeles") - 8_800.0).abs() < 80.0);
        assert!((between("paris", "london") - 340.0).abs() < 80.0);
        let pole = Location { north: 90.0, east: 7.0 };
        assert!((pole.distance(Location { north: -90.0, east: 7.0 }) - 20_015.0).abs() < 1.0);
    }

    #[test]
    fn local_time_follows_the_sun() {
        let at = |east| Location { north: 0.0, east };
        assert_eq!(at(0.0).local_hour(12), 12.0);
        assert_eq!(at(-75.0).local_hour(2), 21.0);
        assert_eq!(at(150.0).local_hour(20), 6.0);
    }

    #[test]
    fn nodes_settle_where_the_weights_are() {
        let total: f64 = EXCHANGE_CITIES.iter().map(|city| city.weight).sum();
        let mut settled = [0.0; EXCHANGE_CITIES.len()];
        for node in 0..20_000 {
            let (city, place) = settle(1, &node.to_string());
            assert!(place.distance(city.place) < 950.0);
            settled[EXCHANGE_CITIES.iter().position(|one| one.name == city.name).unwrap()] += 1.0;
        }
        for (city, found) in EXCHANGE_CITIES.iter().zip(settled) {
            let expected = 20_000.0 * city.weight / total;
            // Six standard deviations.
            assert!((found - expected).abs() < 6.0 * libm::sqrt(expected), "{}: {found}", city.name);
        }
    }
}
