// Play moves a slider, and goes on from where the slider has been put. Only Play's own moves become messages to Python:
// what answers a move waits behind every message that came before.
async function initialize({ model }) {
  const find = (name) => model.widget_manager.get_model(model.get(name).replace("IPY_MODEL_", ""));
  const [play, slider] = await Promise.all(["play", "slider"].map(find));
  slider.on("change:index", () => play.set("value", slider.get("index")));
  play.on("change:value", () => {
    if (slider.get("index") === play.get("value")) return;
    slider.set("index", play.get("value"));
    slider.save_changes();
  });
}
export default { initialize };
