import { describe, expect, test } from 'vitest'
import { plainAddress, shareKeyOf } from '../../../../src/ingest/broker/connection-limits/address-share.ts'

describe('addresses are counted', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:5::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
    ['1:2:3:4:5:6:192.0.2.7', '1:2:3:4::/64'],
  ])('%s as %s', (address, key) => {
    expect(shareKeyOf(plainAddress(address))).toBe(key)
  })

  test('together where the socket does not know them', () => {
    expect(plainAddress(undefined)).toBeNull()
    expect(shareKeyOf(null)).toBe('unknown')
  })
})
