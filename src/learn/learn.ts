// learn.ts: the door of learning: listens to somebody's broker and proposes the sources for what it hears.
//
// Promises
//   It changes nothing: no session, subscription or message is left at the broker, and nothing is written.
//   Its memory is bounded however many topics there are and however large messages are (topic-shapes.ts has the bounds).
//   What it proposes is what `check` accepts, and was tried on what was heard by the mapper itself: no guess at what
//   a message means but the presets', and where no preset fits a draft that says so.
//   It says what will be missing, in sentences, before anybody finds out from the far end.
//
// How
//   broker-listener.ts   a guest at the broker, for a time      topic-shapes.ts   topics by their shape, with samples
//   proposal.ts  every preset tried, the best taken     preset-fit.ts      one mapping tried on the samples
//   source-draft.ts    a source by the names of keys          missing-values.ts  what will be missing
//   yaml-blocks.ts   the proposal as YAML
//
// What can go wrong, and what then happens
//   the broker does not let us in        BROKER_UNREACHABLE
//   it refuses the subscription          SUBSCRIPTION_REFUSED; the broker inside a gateway always does
//   the connection is lost on the way    what was heard until then is used
//   nothing is heard                     an empty proposal: the caller says so

export { sourcesYaml } from './yaml-blocks.ts'
export { listen, type EndReason } from './broker-listener.ts'
export { missingValuesOf } from './missing-values.ts'
export { propose, type Proposal, type Proposed } from './proposal.ts'
export { createCollector, type ObservedTraffic, type TopicShape } from './topic-shapes.ts'
