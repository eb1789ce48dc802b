import { describe, expect, test } from 'vitest'
import {
  mappingLines,
  partitionFilters,
  partitionOf,
  subjectOf,
  topicOf,
  topicStart,
} from '../../../src/ingest/jetstream/nats-subjects.ts'
import { rowsBeside } from '../../support/case-rows.ts'
import { mqttStream } from '../../../src/ingest/jetstream/types.ts'

const layout = {
  stream: mqttStream,
  topics: [
    { filter: 'telemetry/v1/+', device: 1 },
    { filter: 'fleet/+/+/#', device: 2 },
  ],
  prefix: 'gw',
  partitions: 4,
}

const pairs = rowsBeside(import.meta.filename) as [topic: string, subject: string][]

describe('topics and subjects', () => {
  test.each(pairs)('%s is %s, and back', (topic, subject) => {
    expect(subjectOf(topic)).toBe(subject)
    expect(topicOf(subject)).toBe(topic)
  })

  test('every topic of dots, slashes and letters comes back as it was', () => {
    const letters = ['/', '.', 'a']
    let topics = ['']
    for (let length = 1; length <= 7; length += 1) {
      topics = topics.flatMap((topic) => letters.map((letter) => topic + letter))
      for (const topic of topics) expect(topicOf(subjectOf(topic))).toBe(topic)
    }
  })

  test('the topic begins after prefix and partition', () => {
    const subject = '$MQTT.msgs.gw.2.fleet.c1.truck//7.up'
    expect(topicOf(subject, topicStart(layout, 2))).toBe('fleet/c1/truck.7/up')
  })
})

describe('partitions', () => {
  test('a durable has one filter for all topics, without the prefix of MQTT on another stream', () => {
    expect(partitionFilters(layout, 3)).toEqual(['$MQTT.msgs.gw.3.>'])
    expect(partitionFilters({ ...layout, stream: 'FLEET' }, 3)).toEqual(['gw.3.>'])
  })

  test('with one partition nothing is mapped, and # has its parent, too', () => {
    const one = { ...layout, partitions: 1 }
    expect(mappingLines(one)).toEqual([])
    expect(partitionFilters(one, 0)).toEqual([
      '$MQTT.msgs.telemetry.v1.*',
      '$MQTT.msgs.fleet.*.*',
      '$MQTT.msgs.fleet.*.*.>',
    ])
    expect(topicOf('$MQTT.msgs.telemetry.v1.t', topicStart(one, 0))).toBe('telemetry/v1/t')
  })

  test('the lines of the mapping hash the device, and keep the topic', () => {
    expect(mappingLines(layout)).toEqual([
      '"telemetry.v1.*": "gw.{{partition(4,1)}}.telemetry.v1.{{wildcard(1)}}"',
      '"fleet.*.*": "gw.{{partition(4,2)}}.fleet.{{wildcard(1)}}.{{wildcard(2)}}"',
      '"fleet.*.*.>": "gw.{{partition(4,2)}}.fleet.{{wildcard(1)}}.{{wildcard(2)}}.>"',
    ])
  })

  test('all topics of a device are in one partition, that of NATS', () => {
    // Seen at nats-server 2.10.27.
    expect(partitionOf('telemetry/v1/truck-7', layout)).toBe(0)
    expect(partitionOf('fleet/c1/truck-7/up', layout)).toBe(0)
    expect(partitionOf('fleet/c2/truck-7/down/x', layout)).toBe(0)
    expect(partitionOf('telemetry/v1/ä€😀', layout)).toBe(3)
    expect(partitionOf('other/truck-7', layout)).toBeNull()
  })
})
