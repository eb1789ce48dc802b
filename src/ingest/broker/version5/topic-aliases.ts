// topic-aliases.ts: the topics that a client has given a number (MQTT 3.3.2.3.4), for one connection. Pure.
//
// A PUBLISH with topic and alias sets the alias; one with an empty topic uses it. The number of aliases is
// announced in CONNACK. Bound: the bytes of all topics of a connection. A topic beyond it is not kept: the
// message that sets it is taken, and the first that uses the alias without topic ends the connection with
// 0x97. An alias never keeps an earlier topic, which would publish under a wrong name.

export type TopicAliases = {
  /** Aliases are 1 to `max`. */
  readonly max: number
  /** `alias` stands for `topic` from now on. */
  set(alias: number, topic: string): void
  /** Undefined: the client has not set it. Null: there was no room for its topic. */
  get(alias: number): string | null | undefined
}

const topicBytesMax = 8 * 1024

export function createTopicAliases(max: number, bytesMax: number = topicBytesMax): TopicAliases {
  /** By alias. Made when the first one is set: few clients use any. */
  let topics: (string | null | undefined)[] | null = null
  let bytesLeft = bytesMax

  function set(alias: number, topic: string): void {
    topics ??= []
    const previous = topics[alias]
    // Some clients send topic and alias each time.
    if (previous === topic) return
    if (typeof previous === 'string') bytesLeft += Buffer.byteLength(previous)
    const size = Buffer.byteLength(topic)
    const hasRoom = size <= bytesLeft
    topics[alias] = hasRoom ? topic : null
    if (hasRoom) bytesLeft -= size
  }

  return { max, set, get: (alias) => topics?.[alias] }
}
