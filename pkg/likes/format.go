package likes

import "strconv"

// AppendShort appends the number as people read it: 999, 1K, 1.5K, 999.9K, 1M.
// Four or more digits are truncated to one decimal, never rounded, so that the
// text is monotone and never claims a like that is not there; a decimal of 0 is
// left out. Negative numbers keep their sign.
func AppendShort(b []byte, n int64) []byte {
	u := uint64(n)
	if n < 0 {
		b = append(b, '-')
		u = -u
	}
	if u < 1000 {
		return strconv.AppendUint(b, u, 10)
	}
	const units = "KMBT" // the last one takes all that is left: 9223372T
	div, unit := uint64(1000), 0
	for u/div >= 1000 && unit < len(units)-1 {
		div *= 1000
		unit++
	}
	b = strconv.AppendUint(b, u/div, 10)
	if tenth := u % div / (div / 10); tenth > 0 {
		b = append(b, '.', byte('0'+tenth))
	}
	return append(b, units[unit])
}

// Short returns what [AppendShort] appends.
func Short(n int64) string { return string(AppendShort(nil, n)) }
