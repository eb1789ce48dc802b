// sparkplug-topic.ts: the parts of a topic of Sparkplug B (specification 3.0, chapter 4).
//
//   spBv1.0/{group}/NBIRTH|NDATA|NDEATH|NCMD/{node}
//   spBv1.0/{group}/DBIRTH|DDATA|DDEATH|DCMD/{node}/{device}
//   spBv1.0/STATE/{host}   or   STATE/{host}, as before version 3
//
// Levels in front are skipped: a bridge may put the name of a broker there.

const namespace = 'spBv1.0'

const nodeVerbs = ['NBIRTH', 'NDATA', 'NDEATH', 'NCMD'] as const
const deviceVerbs = ['DBIRTH', 'DDATA', 'DDEATH', 'DCMD'] as const

export type SparkplugVerb = (typeof nodeVerbs)[number] | (typeof deviceVerbs)[number]

export type SparkplugTopic = {
  /** STATE: whether a host application is there. */
  verb: SparkplugVerb | 'STATE'
  /** `group/node`. */
  nodeName: string
  /** '' for messages of the node itself. */
  device: string
  /** Where a command to the node is published. */
  commandTopic: string
}

/** Null where the topic is not a topic of Sparkplug B. */
export function sparkplugTopicOf(topic: string): SparkplugTopic | null {
  const levels = topic.split('/')
  const start = levels.indexOf(namespace)
  if (start === -1) return levels.length === 2 && levels[0] === 'STATE' ? hostState : null
  const [group = '', word = '', node = '', device = ''] = levels.slice(start + 1)
  const count = levels.length - start - 1
  if (count === 2 && group === 'STATE') return hostState
  const verb =
    count === 3
      ? nodeVerbs.find((known) => known === word)
      : count === 4
        ? deviceVerbs.find((known) => known === word)
        : undefined
  if (!verb || group === '' || node === '' || (count === 4 && device === '')) return null
  const commandTopic = [...levels.slice(0, start + 1), group, 'NCMD', node].join('/')
  return { verb, nodeName: `${group}/${node}`, device, commandTopic }
}

const hostState: SparkplugTopic = { verb: 'STATE', nodeName: '', device: '', commandTopic: '' }
