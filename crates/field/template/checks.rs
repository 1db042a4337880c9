//! What every controller must hold.

use byway_control::contract_check;
use my_law::CONTROLLER;

#[test]
fn it_keeps_the_contract_whatever_happens() {
    for seed in 0..400 {
        contract_check::check(CONTROLLER.make, seed).unwrap();
    }
    contract_check::check_route_change(CONTROLLER.make).unwrap();
}

#[test]
fn it_is_called_as_it_is_listed() {
    assert_eq!((CONTROLLER.make)(1).name(), CONTROLLER.name);
}
