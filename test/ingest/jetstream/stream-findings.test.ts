// What is said of a stream of NATS that would lose messages or delay devices.

import type { StreamInfo } from '@nats-io/jetstream'
import { expect, test } from 'vitest'
import { streamFindings } from '../../../src/ingest/jetstream/stream-setup/stream-setup.ts'

const addresses = ['a', 'b', 'c'].map((host) => ({ host, port: 4222 }))

function streamWith(replicas: number, changes: object = {}): StreamInfo {
  const others = ['b', 'c'].slice(0, replicas - 1).map((name) => ({ name, current: true, active: 1 }))
  return {
    config: { name: '$MQTT_msgs', storage: 'file', max_age: 0, max_msgs: -1, max_bytes: -1, ...changes },
    cluster: { name: 'fleet', leader: 'a', replicas: others },
  } as unknown as StreamInfo
}

test.each([
  { replicas: 3, nodes: 3, says: [] },
  { replicas: 2, nodes: 3, says: [/has 2 replicas, and the config names 3 nodes/] },
  { replicas: 1, nodes: 3, says: [/has one replica/] },
  // The config may name one node of three.
  { replicas: 2, nodes: 1, says: [] },
  { replicas: 2, nodes: 2, says: [] },
])('$replicas replicas, where the config names $nodes nodes', ({ replicas, nodes, says }) => {
  const found = streamFindings(streamWith(replicas), { addresses: addresses.slice(0, nodes) })
  expect(found.map(({ detail }) => detail)).toEqual(says.map((text) => expect.stringMatching(text)))
})

test.each([
  { changes: { storage: 'memory' }, says: /is in memory/ },
  { changes: { max_age: 60e9 }, says: /after 1 m/ },
  { changes: { max_msgs: 100, discard: 'old' }, says: /discards the oldest/ },
])('a stream with $changes', ({ changes, says }) => {
  const found = streamFindings(streamWith(3, changes), { addresses })
  expect(found).toMatchObject([{ detail: expect.stringMatching(says) }])
})
