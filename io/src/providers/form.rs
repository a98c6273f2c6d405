//! How the live streams of a panel come: as MPEG-TS or as HLS, as far as that showed.
//!
//! What one of them is says little of the others: some may not be there, and some panels have both kinds. What does not come in
//! the form in which the others do is asked for in the other one, and whatever showed is looked at anew with each catalogue that
//! is read. MPEG-TS is worth that: it is fetched once for all who watch it.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_core::input::TitleId;

/// So many have to come in another form than they are asked for first, and none in that, until it is taken for the panel's.
const RULE: usize = 2;

/// So many are remembered that are not like the others.
const OTHERS: usize = 1 << 14;

/// How a live stream comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Ts,
    Hls,
}

impl Form {
    /// What the address of one ends in.
    pub fn extension(self) -> &'static str {
        match self {
            Form::Ts => "ts",
            Form::Hls => "m3u8",
        }
    }

    fn other(self) -> Form {
        match self {
            Form::Ts => Form::Hls,
            Form::Hls => Form::Ts,
        }
    }
}

/// What became of one that did not come like the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tried {
    /// It is asked for in the other form.
    Asked,
    /// So it came.
    Came,
    /// It came in neither, and is asked for like the others.
    Neither,
}

/// How the live streams of one panel come.
#[derive(Clone, Debug)]
pub(crate) struct Forms {
    /// As they come, for all that showed, and are asked for; `None`: too few did yet.
    common: Option<Form>,
    /// As they are asked for before.
    first: Form,
    /// Those that are not like the others.
    others: Arc<BTreeMap<TitleId, Tried>>,
}

impl Default for Forms {
    fn default() -> Self {
        Forms::all(Form::Ts)
    }
}

impl Forms {
    /// All are asked for so, for all that is known.
    pub fn all(first: Form) -> Self {
        Forms { common: None, first, others: Arc::default() }
    }

    /// The same as if nothing had shown yet and all were asked for in this form first.
    pub fn beginning(&self, first: Form) -> Self {
        Forms { first, ..self.clone() }
    }

    /// How they are asked for, but for those that are not like the others.
    pub fn common(&self) -> Form {
        self.common.unwrap_or(self.first)
    }

    /// How one is asked for.
    pub fn of(&self, title: TitleId) -> Form {
        let common = self.common();
        match self.others.get(&title) {
            Some(Tried::Asked | Tried::Came) => common.other(),
            Some(Tried::Neither) | None => common,
        }
    }

    /// One came. The form in which all are asked for from here on, if that changed.
    pub fn came(&mut self, title: TitleId, form: Form) -> Option<Form> {
        match self.common {
            Some(common) if common == form => self.forget(title),
            Some(_) => self.remember(title, Tried::Came),
            None if self.first == form => (self.common, self.others) = (Some(form), Arc::default()),
            None => {
                self.remember(title, Tried::Came);
                if self.others.values().filter(|tried| **tried == Tried::Came).take(RULE).count() == RULE {
                    (self.common, self.others) = (Some(form), Arc::default());
                    return Some(form);
                }
            }
        }
        None
    }

    /// One did not come in this form. Whether it is asked for in the other one from here on.
    pub fn failed(&mut self, title: TitleId, form: Form) -> bool {
        if self.of(title) != form {
            return false;
        }
        match self.others.get(&title) {
            None => self.remember(title, Tried::Asked),
            Some(Tried::Asked) => self.remember(title, Tried::Neither),
            Some(Tried::Came) => self.forget(title),
            Some(Tried::Neither) => {}
        }
        self.of(title) != form
    }

    /// The panel's catalogue was read anew: what was not as it was asked for first may have changed.
    pub fn look_again(&mut self) {
        self.others = Arc::default();
        self.common = self.common.filter(|common| *common == self.first);
    }

    fn forget(&mut self, title: TitleId) {
        if self.others.contains_key(&title) {
            Arc::make_mut(&mut self.others).remove(&title);
        }
    }

    fn remember(&mut self, title: TitleId, tried: Tried) {
        let known = self.others.get(&title);
        if known != Some(&tried) && (known.is_some() || self.others.len() < OTHERS) {
            Arc::make_mut(&mut self.others).insert(title, tried);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TitleId = TitleId(1);
    const TWO: TitleId = TitleId(2);
    const THREE: TitleId = TitleId(3);

    #[test]
    fn a_panel_with_both_kinds_has_each_asked_for_as_it_comes() {
        for common in [Form::Ts, Form::Hls] {
            let other = common.other();
            let mut forms = Forms::all(common);
            assert_eq!(forms.came(ONE, common), None);
            assert_eq!((forms.of(ONE), forms.of(TWO)), (common, common));
            assert!(forms.failed(TWO, common));
            assert_eq!(forms.came(TWO, other), None);
            assert_eq!((forms.of(ONE), forms.of(TWO)), (common, other));
            // What it was is no more than that.
            assert!(forms.failed(TWO, other));
            assert_eq!(forms.of(TWO), common);
        }
    }

    #[test]
    fn what_comes_in_neither_is_tried_once_for_each_catalogue() {
        let mut forms = Forms::default();
        for _ in 0..2 {
            assert!(forms.failed(ONE, Form::Ts));
            assert!(!forms.failed(ONE, Form::Ts), "what was asked for before says nothing");
            assert!(forms.failed(ONE, Form::Hls), "it is asked for as before");
            assert!(!forms.failed(ONE, Form::Ts));
            assert_eq!((forms.of(ONE), forms.of(TWO)), (Form::Ts, Form::Ts));
            forms.look_again();
        }
    }

    #[test]
    fn one_that_comes_in_another_form_is_no_rule_and_two_are_one_until_the_catalogue_is_read_anew() {
        let mut forms = Forms::default();
        for _ in 0..2 {
            assert!(forms.failed(ONE, Form::Ts));
            assert_eq!((forms.of(ONE), forms.of(TWO)), (Form::Hls, Form::Ts));
            assert_eq!([forms.came(ONE, Form::Hls), forms.came(ONE, Form::Hls)], [None, None], "it is one, twice");
            assert_eq!((forms.of(ONE), forms.of(TWO)), (Form::Hls, Form::Ts));
            assert!(forms.failed(TWO, Form::Ts));
            assert_eq!(forms.of(THREE), Form::Ts);
            assert_eq!(forms.came(TWO, Form::Hls), Some(Form::Hls));
            assert_eq!([ONE, TWO, THREE].map(|title| forms.of(title)), [Form::Hls; 3]);
            assert_eq!(forms.beginning(Form::Ts).of(THREE), Form::Hls, "it showed");
            forms.look_again();
            assert_eq!([ONE, TWO, THREE].map(|title| forms.of(title)), [Form::Ts; 3]);
        }
        // Where one came as it was asked for, the others are what is not like it.
        assert_eq!(forms.came(THREE, Form::Ts), None);
        for title in [ONE, TWO] {
            assert!(forms.failed(title, Form::Ts));
            assert_eq!((forms.came(title, Form::Hls), forms.of(title)), (None, Form::Hls));
        }
        assert_eq!(forms.of(TitleId(4)), Form::Ts);
        forms.look_again();
        assert_eq!(forms.of(ONE), Form::Ts);
    }
}
