//! Many short lists.

/// Several lists of numbers, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberLists {
    /// Where each list ends.
    pub(super) ends: Box<[u32]>,
    pub(super) all: Box<[u32]>,
}

impl NumberLists {
    pub(super) fn get(&self, list: u32) -> &[u32] {
        let end = self.ends.get(list as usize).copied().unwrap_or(0);
        let start = match list.checked_sub(1) {
            Some(before) => self.ends.get(before as usize).copied().unwrap_or(end),
            None => 0,
        };
        self.all.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Returns the lists with other members.
    pub(super) fn renumbered(&self, number: impl Fn(u32) -> u32) -> Self {
        let all = self.all.iter().map(|it| number(*it)).collect();
        Self { ends: self.ends.clone(), all }
    }

    /// Makes lists of pairs of a list's number and a member; members keep their order.
    pub(super) fn of(count: usize, pairs: &[(u32, u32)]) -> Self {
        let mut ends = vec![0_u32; count];
        for (list, _) in pairs {
            if let Some(end) = ends.get_mut(*list as usize) {
                *end += 1;
            }
        }
        let mut total = 0;
        for end in &mut ends {
            // Where the list starts, until its members are put in.
            let count = std::mem::replace(end, total);
            total += count;
        }
        let mut all = vec![0; total as usize];
        for (list, member) in pairs {
            let Some(at) = ends.get_mut(*list as usize) else { continue };
            if let Some(place) = all.get_mut(*at as usize) {
                *place = *member;
            }
            *at += 1;
        }
        Self { ends: ends.into(), all: all.into() }
    }
}

/// Several lists of numbers, each behind its length: what belongs to a list lies together.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixedLists(Vec<u32>);

impl PrefixedLists {
    /// Adds a list, and returns where it is.
    pub(super) fn push(&mut self, list: &[u32]) -> u32 {
        if list.is_empty() {
            return u32::MAX;
        }
        let start = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.push(u32::try_from(list.len()).unwrap_or(0));
        self.0.extend_from_slice(list);
        start
    }

    /// Returns the lists with other members, each in order.
    pub(super) fn renumbered(&self, number: impl Fn(u32) -> u32) -> Self {
        let mut lists = self.clone();
        let mut rest = lists.0.as_mut_slice();
        while let Some((length, behind)) = rest.split_first_mut() {
            let (list, behind) = behind.split_at_mut((*length as usize).min(behind.len()));
            for it in &mut *list {
                *it = number(*it);
            }
            list.sort_unstable();
            rest = behind;
        }
        lists
    }

    /// Returns the list that starts at a place.
    pub(super) fn get(&self, start: u32) -> &[u32] {
        let found = self.0.get(start as usize..).and_then(<[u32]>::split_first);
        found.and_then(|(length, rest)| rest.get(..*length as usize)).unwrap_or_default()
    }
}
