use holdfast_io::library::Shelf;

use super::super::*;
use super::faults;

#[test]
fn a_library_has_a_name_of_its_own_and_a_whole_path() {
    let read = parse("[[library]]\nname = 'a'\npath = '/srv/a'\nkind = 'series'\ngroup = 'Für Kinder'", "f.toml");
    let library = read.expect("reads").libraries.remove(0);
    assert_eq!((library.kind, library.group.as_str()), (Shelf::Series, "Für Kinder"));
    for (text, fault) in [
        ("path = '/a'", "f.toml:1: key `library[0]`: has no name; write `name`"),
        ("name = 'a'", "f.toml:1: key `library[0]`: has no directory; write `path`"),
        ("name = 'a'\npath = 'films'", "f.toml:3: key `library[0].path`: \"films\" does not begin with a /"),
        ("name = 'a'\npath = '/a\\0'", "f.toml:3: key `library[0].path`"),
        ("name = 'a'\npath = '/a'\n[[library]]\nname = 'a'\npath = '/b'", "f.toml:5: key `library[1].name`: \"a\" is"),
    ] {
        let text = text.replace("'/a\\0'", "\"/a\\u0000\"");
        let faults = faults(&format!("[[library]]\n{text}"));
        assert!(faults[0].starts_with(fault), "{faults:?}");
    }
}
