import { describe, expect, test } from 'vitest'
import {
  connackCodeOf,
  disconnectCodes,
  dropCodes,
  reasonCode,
  refusalCodes,
} from '../../../../src/ingest/broker/version5/reason-codes.ts'

// MQTT 5, tables in 3.2.2.2 and 3.14.2.1: what a server may send.
const ofConnack = [
  0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99, 0x9a, 0x9b,
  0x9c, 0x9d, 0x9f,
]
const ofDisconnect = [
  0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
  0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
]
const foundInConnect = ['bad_client_id']

describe('reason codes', () => {
  test('[MQTT-3.2.2-8] a refused CONNECT has a code that CONNACK may have', () => {
    const codes = Object.values(refusalCodes).filter((code) => code !== null)
    expect(codes.filter((code) => !ofConnack.includes(code))).toEqual([])
    expect(codes.filter((code) => connackCodeOf(code) !== code)).toEqual([])
  })

  test('[MQTT-3.14.2-1] a closed connection has a code that DISCONNECT may have', () => {
    const codes = [...Object.entries(dropCodes), ...Object.entries(disconnectCodes)]
    const others = codes.filter(([, code]) => code !== null && !ofDisconnect.includes(code))
    expect(others.map(([reason]) => reason)).toEqual(foundInConnect)
  })

  test('[MQTT-3.2.2-8] a fault before CONNACK is answered only by what CONNACK may have', () => {
    expect(connackCodeOf(dropCodes.bad_client_id)).toBe(0x85)
    expect(connackCodeOf(dropCodes.bad_will_topic)).toBe(0x90)
    expect(connackCodeOf(dropCodes.protocol_error)).toBe(0x81)
    expect(connackCodeOf(dropCodes.keepalive_timeout)).toBeNull()
    expect(connackCodeOf(dropCodes.acks_not_read)).toBeNull()
    const answered = Object.values(reasonCode).filter((code) => connackCodeOf(code) !== null)
    expect(answered.filter((code) => !ofConnack.includes(code))).toEqual([])
  })
})
