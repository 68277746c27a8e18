# What each kind of GPU needs: how llama.cpp is built, the device nodes (as DeviceAllow names them), the groups that own
# them, and a shell test which tells that they are there.
{
  cuda = {
    build = {
      cudaSupport = true;
    };
    devices = [
      "char-nvidia"
      "char-nvidiactl"
      "char-nvidia-frontend"
      "char-nvidia-uvm"
      "char-nvidia-caps"
    ];
    groups = [ "video" ];
    present = "[ -e /dev/nvidiactl ] && [ -e /dev/nvidia-uvm ]";
  };
  rocm = {
    build = {
      rocmSupport = true;
    };
    devices = [
      "char-kfd"
      "char-drm"
    ];
    groups = [
      "render"
      "video"
    ];
    present = "[ -e /dev/kfd ] && ls /dev/dri/renderD*";
  };
  vulkan = {
    build = {
      vulkanSupport = true;
    };
    devices = [ "char-drm" ];
    groups = [
      "render"
      "video"
    ];
    present = "ls /dev/dri/renderD*";
  };
}
