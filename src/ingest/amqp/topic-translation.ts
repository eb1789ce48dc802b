// topic-translation.ts: topics of MQTT and routing keys of RabbitMQ. Pure.
//
// The MQTT plugin of RabbitMQ writes `.` for `/` in a topic and leaves a `.` as it is: `t/dev.1/gps` and
// `t/dev/1/gps` both become `t.dev.1.gps`. The way back is found with `topics` of the bridge: where one has
// `{device}`, names of devices may have dots, and `t/{device}/gps` gives `t/dev.1/gps`. `+` is one level
// without a dot, `#` any rest, in which each `.` is a `/`. Where several fit, the one with the most levels
// that are no wildcards counts, then the one with the most levels. Where none fits each `.` is a `/`. Empty
// levels and every other character stay as they are; a `*` is one, as no topic of a message has a `+`.
//
// Sparkplug: with `mqtt.sparkplug = true` the plugin writes `spBv1___0` for the `spBv1.0` at the beginning.

import { deviceLevel } from '../bridges/bridge-address.ts'

type Topic = { topic: string; device: string | null }

export type TopicTranslation = {
  topicOf(routingKey: string): string
  /** The device, by `{device}`; null where no topic with it fits. */
  deviceOf(routingKey: string): string | null
}

/** Routing keys that are kept with their topics: devices use the same ones again and again. */
const cacheMax = 16_384

const sparkplug = /^(sp[AB]v\d+)(?:___|\.)(\d+)\./

/** `topics`: filters of MQTT, with `{device}` for a level. */
export function createTopicTranslation(topics: readonly string[]): TopicTranslation {
  const patterns = topics
    .filter((topic) => topic.split('/').includes(deviceLevel))
    .map(patternOf)
    .sort((a, b) => b.fixed - a.fixed || b.levels.length - a.levels.length)
  const cache = new Map<string, Topic>()

  function lookUp(routingKey: string): Topic {
    const known = cache.get(routingKey)
    if (known !== undefined) return known
    const found = translate(routingKey)
    if (cache.size >= cacheMax) cache.clear()
    cache.set(routingKey, found)
    return found
  }

  function translate(routingKey: string): Topic {
    for (const { pattern, levels } of patterns) {
      const match = pattern.exec(routingKey)
      if (match === null) continue
      let group = 0
      let device: string | null = null
      const parts: string[] = []
      for (const level of levels) {
        if (level !== deviceLevel && level !== '+' && level !== '#') parts.push(level)
        else {
          const text = match[++group]
          if (level === deviceLevel) device = text ?? null
          if (text !== undefined) parts.push(level === '#' ? text.replaceAll('.', '/') : text)
        }
      }
      return { topic: parts.join('/'), device }
    }
    return { topic: plainTopic(routingKey), device: null }
  }

  return {
    topicOf: (routingKey) => (patterns.length === 0 ? plainTopic(routingKey) : lookUp(routingKey).topic),
    deviceOf: (routingKey) => (patterns.length === 0 ? null : lookUp(routingKey).device),
  }
}

/** `t/{device}/gps` is `^t\.(.*?)\.gps$`. */
function patternOf(topic: string) {
  const levels = topic.split('/')
  const parts = levels.map((level, index) => {
    const dot = index === 0 ? '' : '\\.'
    if (level === deviceLevel) return `${dot}(.*?)`
    if (level === '+') return `${dot}([^.]*)`
    if (level === '#') return `(?:${dot}(.*))?`
    const word = level.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    return dot + (index === 0 ? word.replace(/^(sp[AB]v\d+)\\\.(\d+)$/, '$1(?:___|\\.)$2') : word)
  })
  return {
    pattern: new RegExp(`^${parts.join('')}$`, 's'),
    fixed: levels.filter((level) => level !== deviceLevel && level !== '+' && level !== '#').length,
    levels,
  }
}

function plainTopic(routingKey: string): string {
  const found = sparkplug.exec(routingKey)
  if (found === null) return routingKey.replaceAll('.', '/')
  return `${found[1]}.${found[2]}/${routingKey.slice(found[0].length).replaceAll('.', '/')}`
}

/** The filter of MQTT for a key of a binding. */
export function filterOfKey(key: string): string {
  return key.replaceAll('*', '+').replaceAll('.', '/')
}
