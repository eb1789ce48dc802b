// topic-rules.ts: checks the topic name of a PUBLISH (MQTT 4.7). Runs for every message.

/** The parser replaces malformed UTF-8 by this character. */
const replacement = 0xfffd
const slash = 0x2f
const plus = 0x2b
const hash = 0x23

export type TopicLimits = { bytesMax: number; levelsMax: number }

/** What is wrong with `topic`, as the end of "a topic that ..."; null for a valid one. */
export function topicProblem(topic: string, limits: TopicLimits): string | null {
  if (topic.length === 0) return 'is empty'
  if (topic.length > limits.bytesMax) return 'is too long'
  let levels = 1
  for (let index = 0; index < topic.length; index += 1) {
    const code = topic.charCodeAt(index)
    if (code === slash) levels += 1
    else if (code === plus || code === hash) return 'contains a wildcard'
    else if (code === 0) return 'contains a null character'
    else if (code === replacement) return 'is not well-formed UTF-8'
  }
  if (levels > limits.levelsMax) return 'has too many levels'
  // [MQTT-4.7.2-1]: topics that begin with $SYS are the broker's own.
  if (topic.startsWith('$SYS/')) return 'begins with $SYS'
  return null
}
