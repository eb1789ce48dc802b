// topic-filter.ts: an MQTT topic filter that a person typed, as a function of topics.

import { Malformed } from './text-cursor.ts'
import { compileTopics, parseTopic } from './topic-pattern.ts'

export type TopicFilter =
  { kind: 'filter'; matches(topic: string): boolean } | { kind: 'malformed'; why: string }

export function topicFilterOf(text: string): TopicFilter {
  try {
    const match = compileTopics([parseTopic(text)])
    return { kind: 'filter', matches: (topic) => match(topic) !== -1 }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    return { kind: 'malformed', why: error.message }
  }
}
