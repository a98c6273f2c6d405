//! Opus packets: how long they last (RFC 6716 §3.1, §3.2), and how MPEG-TS wraps them (Xiph's mapping).

/// Samples of a packet at 48 kHz; `None` if it is empty.
pub fn samples(packet: &[u8]) -> Option<u32> {
    let toc = packet.first()?;
    let config = toc >> 3;
    let frame = match config {
        0..=11 => [480, 960, 1920, 2880][usize::from(config % 4)],
        12..=15 => [480, 960][usize::from(config % 2)],
        _ => [120, 240, 480, 960][usize::from(config % 4)],
    };
    let count = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    Some(frame * count)
}

/// The first packet of what is wrapped for MPEG-TS, and the rest; `None` if that is damaged.
pub fn unwrap(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([mark, flags], mut rest) = data.split_first_chunk::<2>()?;
    if *mark != 0x7f || flags & 0xe0 != 0xe0 {
        return None;
    }
    let mut length = 0;
    loop {
        let (byte, more) = rest.split_first()?;
        rest = more;
        length += usize::from(*byte);
        if *byte < 255 {
            break;
        }
    }
    let trims = usize::from(flags >> 4 & 1) + usize::from(flags >> 3 & 1);
    rest = rest.get(2 * trims..)?;
    if flags & 4 != 0 {
        let (extension, more) = rest.split_first()?;
        rest = more.get(usize::from(*extension)..)?;
    }
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_says_how_long_a_packet_lasts() {
        for (packet, expected) in
            [(&[0xfc][..], 960), (&[0xe0], 120), (&[0x18], 2880), (&[0x69], 1920), (&[0xff, 3], 2880)]
        {
            assert_eq!(samples(packet), Some(expected), "{packet:x?}");
        }
        assert_eq!((samples(&[]), samples(&[0xff])), (None, None));
    }

    #[test]
    fn wrapped_packets_are_told_apart() {
        let data = [0x7f, 0xe0, 2, 8, 9, 0x7f, 0xfc, 1, 0, 0, 0, 0, 2, 5, 5, 7];
        let (first, rest) = unwrap(&data).unwrap();
        assert_eq!((first, unwrap(rest)), (&[8, 9][..], Some((&[7][..], &[][..]))));
        for length in 0..data.len() {
            assert!(unwrap(&data[..length]).is_none_or(|(first, _)| first == [8, 9]));
        }
        let long = [&[0x7f, 0xe0, 255, 0][..], &[1; 255]].concat();
        assert_eq!(unwrap(&long).map(|(packet, _)| packet.len()), Some(255));
    }
}
