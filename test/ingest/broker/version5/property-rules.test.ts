import { describe, expect, test } from 'vitest'
import { createMessagePropertyReader } from '../../../../src/ingest/broker/version5/message-properties.ts'
import {
  clientProperties,
  deliveredProperties,
  propertiesEnd,
  propertyFault,
  propertyIds,
  propertyValueAt,
} from '../../../../src/ingest/broker/version5/property-rules.ts'
import { propertiesOf, property, text, uint16, uint32, userProperty } from '../../../support/mqtt5-packets.ts'

describe('the properties of a packet', () => {
  test('end where their length says, whatever follows', () => {
    const section = propertiesOf(userProperty('a', 'b'.repeat(200)), property.sessionExpiry, uint32(5))
    const bytes = Buffer.concat([Buffer.from([9, 9]), section, Buffer.from([0x26, 0, 1])])
    const end = propertiesEnd(bytes, 2, bytes.length, clientProperties.disconnect)
    expect(end).toBe(2 + section.length)
    // A packet that ends before does not reach into the next one.
    expect(propertiesEnd(bytes, 2, 1 + section.length, clientProperties.disconnect)).toBeLessThan(0)
  })

  test('have their values where a reader finds them', () => {
    const bytes = propertiesOf(
      userProperty('\u0011', '\u0011'),
      property.reasonString,
      text('x'),
      property.sessionExpiry,
      uint32(7200),
    )
    const { disconnect } = clientProperties
    const at = propertyValueAt(bytes, 0, bytes.length, propertyIds.sessionExpiry, disconnect)
    expect(bytes.readUInt32BE(at)).toBe(7200)
    const none = propertiesOf(userProperty('\u0011', '\u0011'))
    expect(propertyValueAt(none, 0, none.length, propertyIds.sessionExpiry, disconnect)).toBe(-1)
  })

  test('give a fault with the name of the packet', () => {
    const bytes = propertiesOf(property.sessionExpiry, uint32(1), property.sessionExpiry, uint32(1))
    const problem = propertiesEnd(bytes, 0, bytes.length, clientProperties.connect)
    expect(propertyFault('CONNECT', problem)).toEqual({
      reason: 'protocol_error',
      detail: 'Its CONNECT has a property twice that may come once (MQTT 2.2.2.2).',
      code: 0x82,
    })
  })
})

test('a server may send several subscription identifiers, and no alias where none was announced', () => {
  const reader = createMessagePropertyReader(deliveredProperties)
  const bytes = propertiesOf(
    property.subscriptionId,
    1,
    property.subscriptionId,
    0x80,
    1,
    userProperty('site', 'north'),
  )
  expect(reader.read(bytes, 0, bytes.length)).toBe(bytes.length)
  expect({ ...reader.user() }).toEqual({ site: 'north' })
  expect(reader.properties()).toBe(null)
  const alias = propertiesOf(property.topicAlias, uint16(1))
  expect(reader.read(alias, 0, alias.length)).toBeLessThan(0)
})
