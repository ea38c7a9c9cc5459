//! Bytes as hexadecimal digits.

/// Writes bytes in hexadecimal digits, two for each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|it| digits(*it)).map(char::from).collect()
}

/// Returns the two digits of a byte.
#[inline]
pub(super) fn digits(byte: u8) -> [u8; 2] {
    let digit = |it: u8| if it < 10 { b'0' + it } else { b'a' + it - 10 };
    [digit(byte >> 4), digit(byte & 0xf)]
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0x00, 0x09, 0x0a, 0x9f, 0xf0, 0xff]), "00090a9ff0ff");
    }
}
