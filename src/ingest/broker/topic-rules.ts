// topic-rules.ts: checks topic names and filters (MQTT 4.7). The parsers have refused malformed UTF-8.

const slash = 0x2f
const plus = 0x2b
const hash = 0x23

export type TopicLimits = { bytesMax: number; levelsMax: number }

/**
 * What is wrong with `topic`, as the end of "a topic that ..."; null for a valid one. Runs for every message.
 */
export function topicProblem(topic: string, limits: TopicLimits): string | null {
  if (topic.length === 0) return 'is empty [MQTT-4.7.3-1]'
  // A UTF-16 unit has at most three bytes in UTF-8, so few topics must be measured.
  if (topic.length * 3 > limits.bytesMax && Buffer.byteLength(topic) > limits.bytesMax)
    return 'is longer than max_topic_bytes'
  let levels = 1
  for (let index = 0; index < topic.length; index += 1) {
    const code = topic.charCodeAt(index)
    if (code === slash) levels += 1
    else if (code === plus || code === hash) return 'contains a wildcard [MQTT-3.3.2-2]'
    else if (code === 0) return 'contains a null character [MQTT-4.7.3-2]'
  }
  if (levels > limits.levelsMax) return 'has more levels than max_topic_levels'
  // [MQTT-4.7.2-1]: topics that begin with $SYS are the broker's own.
  if (topic.startsWith('$SYS/')) return systemTopic
  return null
}

const systemTopic = 'begins with $SYS'

/**
 * The state of a bridge, which Mosquitto publishes when it connects, and as its will (`notifications`, on by
 * default). It may be sent, and is ignored.
 */
export function isBridgeState(topic: string, problem: string | null): boolean {
  return problem === systemTopic && topic.startsWith('$SYS/broker/connection/')
}

/** What is wrong with a filter of SUBSCRIBE or UNSUBSCRIBE (MQTT 4.7.1). */
export function filterProblem(filter: string): string | null {
  if (filter.length === 0) return 'is empty [MQTT-4.7.3-1]'
  if (filter.includes('\0')) return 'contains a null character [MQTT-4.7.3-2]'
  const levels = filter.split('/')
  for (const [index, level] of levels.entries()) {
    if (level.length > 1 && (level.includes('+') || level.includes('#')))
      return 'has a wildcard beside other characters of a level [MQTT-4.7.1-2, MQTT-4.7.1-3]'
    if (level === '#' && index < levels.length - 1) return 'has # before its last level [MQTT-4.7.1-2]'
  }
  return null
}
