use super::*;
use proptest::prelude::*;

const ALL: Context<'static> = Context { taken: &|_, _| false, groups: &[], entries: 1_000_000 };

fn read(answers: &[(Step, &str)], step: usize) -> (Catalogue, Vec<String>) {
    let (mut catalogue, mut reader, mut faults) = (Catalogue::default(), Reader::default(), Vec::new());
    for (which, answer) in answers {
        answer.as_bytes().chunks(step).for_each(|data| reader.push(*which, data, &mut catalogue, &ALL));
        faults.extend(reader.finish(*which, 1_000_000, &mut catalogue).err());
    }
    (catalogue, faults)
}

const LIVE: &str = r#"[{"num":"1","name":"One","stream_type":"live","stream_id":"11","stream_icon":"http://l/a.png","epg_channel_id":null,
    "added":"1700000000","category_id":"5","tv_archive":1,"tv_archive_duration":"7"},
    {"num":2,"name":"T\u00e4 \"wo\" }]","stream_id":12,"stream_icon":false,"category_id":5,"category_ids":[5],"tv_archive":"0"},
    {"name":null,"title":"Three","stream_id":13.0,"category_id":[],"category_ids":["6"],"epg_channel_id":{"a":1}}]"#;

#[test]
fn every_type_that_panels_use_is_read() {
    let categories =
        r#"[{"category_id":"5","category_name":"News","parent_id":0},{"category_id":6,"category_name":"Sport"}]"#;
    for step in [1, 3, 10_000] {
        let answers = [(Step::Categories(Kind::Live), categories), (Step::Streams(Kind::Live), LIVE)];
        let (catalogue, faults) = read(&answers, step);
        assert_eq!((faults, catalogue.skipped, catalogue.counts[0]), (vec![], 0, 3));
        let [one, two, three] = [0, 1, 2].map(|place| catalogue.get(place));
        assert_eq!((one.name, one.group, one.number, one.days, one.catchup), ("One", "News", 1, 7, "xc"));
        assert_eq!((two.name, two.group, two.days, two.logo), ("Tä \"wo\" }]", "News", 0, ""));
        assert_eq!((three.name, three.group, three.guide), ("Three", "Sport", ""));
        assert_eq!([0, 1, 2].map(|place| catalogue.get(place).address.to_owned()), ["11", "12", "13"]);
        assert_eq!(catalogue.addresses(0)[1], "http://l/a.png");
    }
}

#[test]
fn films_and_series_say_more() {
    let films = r#"{"0":{"name":"F","stream_id":7,"container_extension":"MKV","rating":7.5,"category_id":null},"1":{"name":"G","stream_id":8}}"#;
    let series = r#"[{"name":"S","series_id":9,"cover":"http://l/s.jpg","plot":"P","last_modified":"5"}]"#;
    let (catalogue, faults) = read(&[(Step::Streams(Kind::Film), films), (Step::Streams(Kind::Series), series)], 5);
    assert_eq!((faults, catalogue.counts), (vec![], [0, 2, 0, 1]));
    assert_eq!((catalogue.get(0).extension, catalogue.get(1).extension), ("mkv", ""));
    assert!(catalogue.get(0).more.contains("\"rating\":\"7.5\""));
    assert!(catalogue.get(2).more.contains("\"plot\":\"P\"") && catalogue.get(2).added == 5);
}

#[test]
fn what_cannot_be_used_is_counted_and_the_rest_kept() {
    let long = "x".repeat(ELEMENT);
    let list = format!(
        r#"[{{"name":"A","stream_id":1}},[1,2],{{"stream_id":2}},{{"name":"x"}},{{"name":"B","stream_id":"../3"}},
        {{"name":"{long}","stream_id":4}},{{"name":"C","stream_id":5}},{{"name":}},7,"x"]"#
    );
    let (catalogue, faults) = read(&[(Step::Streams(Kind::Live), &list)], 1000);
    assert_eq!((catalogue.len(), catalogue.skipped, faults.len()), (2, 6, 0));
}

#[test]
fn what_is_no_list_is_an_empty_one_or_a_fault() {
    for empty in ["[]", "null", "false", "", "{}", " [ ] "] {
        let (catalogue, faults) = read(&[(Step::Streams(Kind::Live), empty)], 3);
        assert_eq!((catalogue.len(), faults.len()), (0, 0), "{empty}");
    }
    for broken in ["[{\"name\":\"A\",\"stream_id\":1}", "[{", "x [1]", "<html>[{}]", &"[".repeat(100)] {
        assert_eq!(read(&[(Step::Streams(Kind::Live), broken)], 3).1.len(), 1, "{broken}");
    }
}

#[test]
fn a_login_says_how_live_streams_come_or_it_is_not_known() {
    for (formats, known) in [
        (r#"["m3u8"]"#, [false, true]),
        (r#"["ts","rtmp"]"#, [true, false]),
        (r#"["m3u8","ts","rtmp"]"#, [true, true]),
        (r#"["M3U8"]"#, [false, true]),
        (r#"["rtmp"]"#, [true, true]),
        ("[]", [true, true]),
        ("null", [true, true]),
        (r#""m3u8""#, [true, true]),
        (r#"[7,{"a":["m3u8"]}]"#, [true, true]),
    ] {
        let answer = format!(r#"{{"user_info":{{"auth":1,"allowed_output_formats":{formats}}}}}"#);
        assert_eq!(login(answer.as_bytes(), 0).map(|said| said.formats), Ok(known), "{formats}");
    }
    let said = Login { offset: 0, formats: [true, true], connections: None };
    assert_eq!(login(br#"{"user_info":{"auth":1}}"#, 0), Ok(said));
}

#[test]
fn a_login_says_how_many_connections_there_may_be_or_nothing() {
    for (said, known) in [
        ("2", Some(2)),
        ("\"1\"", Some(1)),
        ("0", None),
        ("null", None),
        ("\"many\"", None),
        ("-1", None),
        ("[]", None),
    ] {
        let answer = format!(r#"{{"user_info":{{"auth":1,"max_connections":{said}}}}}"#);
        assert_eq!(login(answer.as_bytes(), 0).map(|own| own.connections), Ok(known), "{said}");
    }
}

#[test]
fn a_login_is_right_or_says_what_is_wrong() {
    let ask = |answer: &str| login(answer.as_bytes(), 1_700_000_000).map(|said| said.offset);
    let zone = |stamp: &str, time: &str| {
        ask(&format!(r#"{{"user_info":{{"auth":1}},"server_info":{{"timestamp_now":{stamp},"time_now":"{time}"}}}}"#))
    };
    assert_eq!(zone("1700000000", "2023-11-14 22:13:20"), Ok(0));
    assert_eq!(zone("\"1700000000\"", "2023-11-14 23:13:25"), Ok(3600));
    assert_eq!(zone("null", "2023-11-14 16:43:19"), Ok(-19800));
    assert_eq!(zone("0", "yesterday"), Ok(0));
    assert_eq!(ask(r#"{"user_info":{"auth":"1","status":"Active"},"server_info":[]}"#), Ok(0));
    for (answer, word) in [
        (r#"{"user_info":{"auth":0}}"#, "does not know"),
        (r#"{"user_info":{"auth":1,"status":"Expired"}}"#, "\"expired\""),
        (r#"{"user_info":[]}"#, "does not know"),
        ("[]", "no panel"),
        ("<html>", "no panel"),
        ("", "no panel"),
    ] {
        assert!(ask(answer).unwrap_err().contains(word), "{answer}: {:?}", ask(answer));
    }
}

#[test]
fn a_series_has_its_episodes_in_whatever_shape() {
    let one = r#"{"id":"101","episode_num":1,"season":2,"title":"T","container_extension":"mkv","info":{"plot":"p"}}"#;
    for shape in [format!(r#"{{"2":[{one}]}}"#), format!("[[{one}]]"), format!("[{one}]")] {
        let (info, told) = series(format!(r#"{{"info":{{"name":"S"}},"episodes":{shape}}}"#).as_bytes()).unwrap();
        assert_eq!((info["name"].as_str(), told.len()), (Some("S"), 1), "{shape}");
        assert_eq!((told[0].id, told[0].season, told[0].number, told[0].extension.as_str()), (101, 2, 1, "mkv"));
        assert_eq!(told[0].info["plot"], "p");
    }
    // What an episode does not say of itself, that under which it stands says.
    for (shape, expected) in [
        (r#"{"2":[{"id":1},{"id":2,"season":0}],"10":[{"id":3,"season":"3"}]}"#, [(1, 2, 1), (2, 2, 2), (3, 3, 1)]),
        (
            r#"{"Season 2":{"0":{"id":1},"4":{"id":2,"episode_num":"5"}},"3":[{"id":3}]}"#,
            [(1, 2, 1), (2, 2, 5), (3, 3, 1)],
        ),
        (r#"[[{"id":1,"season":0}],[{"id":2},{"id":3}]]"#, [(1, 0, 1), (2, 2, 1), (3, 2, 2)]),
        (r#"[{"id":1},{"id":2,"info":{"season":4}},{"id":3,"season":0}]"#, [(1, 1, 1), (2, 4, 2), (3, 0, 3)]),
        (r#"{"0":[{"id":1}],"1":[{"id":2},{"id":3}]}"#, [(1, 0, 1), (2, 1, 1), (3, 1, 2)]),
    ] {
        let (_, told) = series(format!(r#"{{"episodes":{shape}}}"#).as_bytes()).unwrap();
        let told: Vec<_> = told.iter().map(|own| (own.id, own.season, own.number)).collect();
        assert_eq!(told, expected, "{shape}");
    }
    for odd in ["[]", "null", "x", "7", "{}", r#"{"user_info":{"auth":0}}"#] {
        assert!(series(odd.as_bytes()).is_none(), "{odd}");
    }
    for odd in [r#"{"episodes":{"1":null,"2":[5,{"id":"x"},{"id":0}]}}"#, r#"{"episodes":7,"info":[]}"#] {
        assert_eq!(series(odd.as_bytes()).unwrap().1.len(), 0, "{odd}");
    }
}

proptest! {
    #[test]
    fn any_answer_is_read(text in r#"[\[\]{}",:a-z0-9\\ ]{0,200}"#, step in 1usize..20) {
        for which in Step::ALL {
            let _ = read(&[(which, &text)], step);
        }
        let _ = series(text.as_bytes());
    }
}
