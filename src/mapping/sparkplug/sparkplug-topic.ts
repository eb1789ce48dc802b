// sparkplug-topic.ts: the parts of a topic of Sparkplug B (specification 3.0, chapter 4).
//
//   spBv1.0/{group}/NBIRTH|NDATA|NDEATH|NCMD/{node}
//   spBv1.0/{group}/DBIRTH|DDATA|DDEATH|DCMD/{node}/{device}
//   spBv1.0/STATE/{host}   or   STATE/{host}, as before version 3
//
// Levels in front are skipped: a bridge may put the name of a broker there.

const namespace = 'spBv1.0'

export type SparkplugTopic = {
  /** STATE: whether a host application is there. */
  verb: 'BIRTH' | 'DATA' | 'DEATH' | 'CMD' | 'STATE'
  /** `group/node`. */
  nodeName: string
  /** '' for messages of the node itself. */
  device: string
  /** Where a command to the node is published. */
  commandTopic: string
}

const verbOf = /^([ND])(BIRTH|DATA|DEATH|CMD)$/
const hostState: SparkplugTopic = { verb: 'STATE', nodeName: '', device: '', commandTopic: '' }

/** Null where the topic is not a topic of Sparkplug B. */
export function sparkplugTopicOf(topic: string): SparkplugTopic | null {
  const levels = topic.split('/')
  const start = levels.indexOf(namespace)
  if (start === -1) return levels.length === 2 && levels[0] === 'STATE' ? hostState : null
  const own = levels.slice(start + 1)
  const [group = '', word = '', node = '', device = ''] = own
  if (own.length === 2 && group === 'STATE') return hostState
  const [, of, verb] = verbOf.exec(word) ?? []
  if (own.length !== (of === 'N' ? 3 : 4) || verb === undefined || own.includes('')) return null
  const commandTopic = [...levels.slice(0, start + 1), group, 'NCMD', node].join('/')
  return { verb: verb as SparkplugTopic['verb'], nodeName: `${group}/${node}`, device, commandTopic }
}
