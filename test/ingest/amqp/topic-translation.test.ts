import { describe, expect, test } from 'vitest'
import { createTopicTranslation, filterOfKey } from '../../../src/ingest/amqp/topic-translation.ts'
import { rowsBeside } from '../../support/case-rows.ts'

const rows = rowsBeside(import.meta.filename) as {
  plain: string[]
  filtered: [filter: string, topic: string, device: string][]
}

/** As the MQTT plugin of RabbitMQ does it. */
const keyOf = (topic: string) => topic.replaceAll('/', '.')

describe('a routing key of RabbitMQ', () => {
  test.each(rows.plain)('gives the topic %s again, without topics in the config', (topic) => {
    expect(createTopicTranslation([]).topicOf(keyOf(topic))).toBe(topic)
  })

  test.each(rows.filtered)('with %s gives %s and its device', (filter, topic, device) => {
    const translation = createTopicTranslation([filter])
    // Twice: the second time it is known.
    for (const _ of [1, 2]) {
      expect(translation.topicOf(keyOf(topic))).toBe(topic)
      expect(translation.deviceOf(keyOf(topic))).toBe(device)
    }
  })

  test('is read with the filter that says the most', () => {
    const translation = createTopicTranslation(['t/{device}', 't/{device}/+', 't/{device}/gps', 'x/+'])
    expect(translation.topicOf('t.dev.1.gps')).toBe('t/dev.1/gps')
    expect(translation.topicOf('t.dev1.can')).toBe('t/dev1/can')
    expect(translation.topicOf('x.dev1.can')).toBe('x/dev1/can')
    expect(translation.deviceOf('x.dev1.can')).toBeNull()
  })

  test('of Sparkplug gives its namespace, with and without mqtt.sparkplug', () => {
    for (const key of ['spBv1___0.depot.DDATA.edge.one', 'spBv1.0.depot.DDATA.edge.one'])
      for (const filters of [[], ['spBv1.0/+/DDATA/+/{device}']])
        expect(createTopicTranslation(filters).topicOf(key)).toBe('spBv1.0/depot/DDATA/edge/one')
  })
})

test('a key of a binding is a filter of MQTT', () => {
  expect(filterOfKey('telemetry.v1.#')).toBe('telemetry/v1/#')
  expect(filterOfKey('telemetry.*.gps')).toBe('telemetry/+/gps')
})
