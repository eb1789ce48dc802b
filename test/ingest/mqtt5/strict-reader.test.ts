import { expect, test } from 'vitest'
import { packetOf, propertiesOf, text, uint16 } from '../../support/mqtt5-packets.ts'
import { readServerPacket } from '../../support/mqtt5-reader.ts'

const malformed: readonly [what: string, bytes: Buffer, problem: string][] = [
  ['a packet of a client', packetOf(0xc0), 'type 12'],
  ['flags', packetOf(0xd1), 'flags 1'],
  ['a CONNACK of 3.1.1', packetOf(0x20, 0, 0), 'ends within'],
  ['a PUBACK with a code that does not exist', packetOf(0x40, uint16(1), 0x85), 'reason code 133'],
  ['session present with a refusal', packetOf(0x20, 1, 0x86, propertiesOf()), 'session present'],
  [
    'a property of another packet',
    packetOf(0x40, uint16(1), 0, propertiesOf(0x21, uint16(1))),
    'property 33',
  ],
  [
    'a property twice',
    packetOf(0xe0, 0, propertiesOf(0x1f, text('a'), 0x1f, text('b'))),
    'property 31 comes twice',
  ],
  ['bytes behind the end', packetOf(0xd0, 1), 'longer than its fields'],
  ['a property that is longer than the section', packetOf(0x20, 0, 0, 2, 0x21, uint16(1)), 'longer than'],
  ['a text that is no UTF-8', packetOf(0xe0, 0, propertiesOf(0x1f, text([0xff]))), 'not valid'],
  ['a flag of 2', packetOf(0x20, 0, 0, propertiesOf(0x25, 2)), 'value 2'],
  ['a length with a needless byte', Buffer.from([0xd0, 0x80, 0]), 'more bytes'],
]

test.each(malformed)('refuses %s', (_what, bytes, problem) => {
  expect(() => readServerPacket(bytes)).toThrow(problem)
})
