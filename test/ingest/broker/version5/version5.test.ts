import type { ConnectRequest } from '../../../../src/ingest/broker/version5/connect-properties.ts'
import { describe, expect, test } from 'vitest'
import { createReceiveQuota } from '../../../../src/ingest/broker/version5/receive-quota.ts'
import {
  createVersion5,
  createVersion5Counts,
  type Version5Options,
} from '../../../../src/ingest/broker/version5/version5.ts'

describe('the quota of messages', () => {
  test('[MQTT-3.3.4-7] a client may have as many as announced, and not one more', () => {
    const quota = createReceiveQuota(3)
    expect([quota.take(), quota.take(), quota.take(), quota.take()]).toEqual([true, true, true, false])
  })

  test('an acknowledged message makes room for another', () => {
    const quota = createReceiveQuota(2)
    for (let count = 0; count < 100; count += 1) {
      expect(quota.take()).toBe(true)
      quota.free()
    }
    expect(quota.used()).toBe(0)
  })

  test('acknowledgements of messages of an earlier connection do not raise it beyond the maximum', () => {
    const quota = createReceiveQuota(1)
    quota.free()
    quota.free()
    expect([quota.take(), quota.take()]).toEqual([true, false])
  })
})

const request: ConnectRequest = {
  cleanStart: true,
  needsClientId: false,
  sessionExpiryMs: 3_600_000,
  keepaliveMs: 0,
  receiveMaximum: 65_535,
  topicAliasMaximum: 0,
  packetBytesMax: 1000,
  wantsReasons: true,
  userProperties: null,
  will: null,
}

test('the state of a connection starts with what its CONNECT asked for', () => {
  const counts = createVersion5Counts()
  const options: Version5Options = {
    request,
    receivedBytesMax: 65_536,
    inFlightMax: 2,
    topicAliasesMax: 7,
  }
  const state = createVersion5(options, counts)
  expect(state).toMatchObject({
    request,
    isAnswered: false,
    sessionExpiryMs: 0,
    packetBytesMax: 1000,
    receivedBytesMax: 65_536,
    hasWillOnDisconnect: false,
    fault: null,
  })
  expect(state.aliases.max).toBe(7)
  expect([state.quota.take(), state.quota.take(), state.quota.take()]).toEqual([true, true, false])
  expect(state.counts).toBe(counts)
})
