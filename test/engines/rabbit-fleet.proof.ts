import { describeFleets } from './fleet-cases.ts'
import { hasRabbitCluster, startRabbit, storedTimes } from './rabbit-engine.ts'

describeFleets({
  name: 'RabbitMQ',
  isThere: hasRabbitCluster,
  start: () => startRabbit({ nodes: 3, lines: [storedTimes] }),
  leading: 'fleet.0',
  limited: { options: { queue: 'max_messages: 100' }, limit: () => Promise.resolve() },
})
